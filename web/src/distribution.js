// Votes of a layer's candidates against what kept them.

import * as Plot from "@observablehq/plot";
import { color, onScheme } from "./colors.js";
import { el, fill, onResize } from "./dom.js";
import { histogram } from "./histogram.js";
import { saveButtons } from "./save.js";
import { byPosterior, byVotes, isValidation, layersOf, roundName, roundNames } from "./rounds.js";
import { number } from "./text.js";
import { rowsOf } from "./data.js";

/** @typedef {import("./types.js").Run} Run */
/** @typedef {import("./rounds.js").Layer} Layer */

export const KINDS = [
  { column: "kept_real", label: "kept, held", color: "real", opacity: 1 },
  { column: "kept_noise", label: "kept, held by no client", color: "noise", opacity: 1 },
  { column: "dropped_real", label: "dropped, held", color: "real", opacity: 0.35 },
  { column: "dropped_noise", label: "dropped, held by no client", color: "noise", opacity: 0.35 },
];

/** Of runs with fake clients. */
const FAKES = [
  { column: "kept_fake", label: "kept, pushed by fake clients", color: "fake", opacity: 1 },
  { column: "dropped_fake", label: "dropped, pushed by fake clients", color: "fake", opacity: 0.35 },
];

/** As long as nobody has counted who holds what. */
const UNDECIDED = [
  { column: "kept_real", label: "kept", color: "undecided", opacity: 1 },
  { column: "dropped_real", label: "dropped", color: "undecided", opacity: 0.35 },
];

export class Distribution {
  /** @param {boolean} isLive @param {boolean} hasFakes */
  constructor(isLive, hasFakes) {
    this.kinds = isLive ? UNDECIDED : [...KINDS, ...(hasFakes ? FAKES : [])];
    this.picture = el("div", { class: "plot" });
    this.caption = el("p", { class: "note" });
    this.frame = 0;
    /** @type {[Run, Layer] | null} */
    this.shown = null;
    const again = () => this.shown && this.show(...this.shown);
    onResize(this.picture, again);
    onScheme(again);
    this.element = el(
      "div",
      {},
      el(
        "p",
        { class: "legend" },
        this.kinds.map((kind) =>
          el(
            "span",
            { class: "key" },
            el("span", { class: `swatch ${kind.color}${kind.opacity < 1 ? " pale" : ""}` }),
            kind.label,
          ),
        ),
      ),
      this.picture,
      this.caption,
      saveButtons((how) => this.save(how)),
    );
  }

  /** @param {import("./save.js").Save} how */
  save(how) {
    const svg = this.picture.querySelector("svg");
    if (svg) how("votes", svg);
  }

  /** @param {Run} run @param {Layer} layer */
  show(run, layer) {
    this.shown = [run, layer];
    // Who drags the slider passes many layers: one picture a frame is enough.
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw(run, layer));
  }

  /** @param {Run} run @param {Layer} layer */
  draw(run, layer) {
    if (!this.picture.clientWidth) return;
    const ranges = rowsOf(run.votes).filter(
      (row) => row.pass === layer.pass && row.layer === layer.layer,
    );
    if (!ranges.length) {
      fill(this.picture, el("p", { class: "note" }, "No votes of this layer are recorded."));
      fill(this.caption);
      return;
    }
    const bars = ranges.flatMap((row) =>
      this.kinds.map((kind) => ({
        from: row.votes_from,
        to: row.votes_to + 1,
        count: row[kind.column] ?? 0,
        kind,
      })),
    ).filter((bar) => bar.count > 0);
    const width = Math.max(this.picture.clientWidth || 640, 280);
    const highest = Math.max(...ranges.map((row) => row.votes_to));
    const lowest = Math.min(...ranges.map((row) => row.votes_from));
    const spread = highest > 8 * Math.max(layer.threshold, 1);
    const thresholds = byVotes(layer) ? [layer.threshold] : [];
    const chart = histogram({
      width,
      label: `Candidates by votes, ${roundName(layer)}`,
      x: {
        label: `votes of a candidate${spread ? " (logarithmic)" : ""} \u2192`,
        type: spread ? "symlog" : "linear",
        constant: Math.max(lowest, 1),
        ticks: spread ? ticksFor(lowest, highest, width) : undefined,
        tickFormat: (/** @type {number} */ votes) => number(votes),
      },
      bars,
      title: (bar) => `${number(bar.from)} to ${number(bar.to - 1)} votes\n${number(bar.count)} candidates\n${bar.kind.label}`,
      marks: [
        Plot.ruleX(thresholds, { stroke: color("ink"), strokeWidth: 1.5, strokeDasharray: "4 3" }),
        Plot.text(thresholds, {
          x: (/** @type {number} */ votes) => votes,
          frameAnchor: "top",
          dy: -14,
          text: (/** @type {number} */ votes) => `threshold ${number(votes)}`,
          fill: "currentColor",
        }),
      ],
    });
    fill(this.picture, chart);
    const rule = {
      votes: "What has more votes than the dashed line was kept.",
      threshold: "What has more votes than the dashed line, which noise hardly reaches, was kept.",
      estimates:
        "No number of votes is a threshold here: the round decides by estimates, which follow from all answers together or have noise of the server's.",
      posterior:
        "No number of votes is a threshold here: the layer keeps candidates by their posterior probability, which weighs the votes of all layers so far.",
      validation: "Its candidates are the words that layers kept; those with fewer votes than the dashed line were not returned.",
      evidence:
        "Its candidates are the words that layers kept. No number of votes is a threshold here: the test adds up the votes of this round and of all layers after the one in which a word became a candidate.",
    }[layer.kept_by];
    const layers = layersOf(run);
    const place = layers.findIndex((each) => each.pass === layer.pass && each.layer === layer.layer);
    const name = roundNames(layers)[place];
    fill(
      this.caption,
      `${name[0].toUpperCase()}${name.slice(1)}: ${number(layer.num_candidates)} candidates, ${number(layer.num_kept)} ${isValidation(layer) ? "returned" : "kept"}; ${number(layer.num_reports)} reports of ${number(layer.num_clients)} clients. One standard deviation of noise is ${number(layer.noise_std)} contributions. ${rule ?? ""}${byPosterior(layer) && run.validates ? " The test of the validation round decides at the end which words are discovered." : ""}`,
    );
  }
}

/** @param {number} lowest @param {number} highest @param {number} width */
function ticksFor(lowest, highest, width) {
  const most = Math.max(Math.floor(width / 90), 3);
  const ticks = [];
  for (let power = 1; power <= highest; power *= 10) {
    for (const step of [1, 2, 5]) {
      const tick = step * power;
      if (tick >= lowest && tick <= highest) ticks.push(tick);
    }
  }
  const every = Math.max(Math.ceil(ticks.length / most), 1);
  return ticks.filter((_, i) => i % every === 0);
}
