// A layer's recorded candidates by the posterior probability that keeps them.

import * as Plot from "@observablehq/plot";
import { color, onScheme } from "./colors.js";
import { KINDS } from "./distribution.js";
import { el, fill, onResize } from "./dom.js";
import { histogram } from "./histogram.js";
import { saveButtons } from "./save.js";
import { number, probability } from "./text.js";
import { DROPPED } from "./trie.js";

/** @typedef {import("./types.js").RoundChunk} RoundChunk */
/** @typedef {import("./rounds.js").Layer} Layer */

/** Log10 odds beyond which all stand together, and the width of a bar. */
const WIDEST = 6, STEP = 0.5;

const TICKS = new Map([[-6, "\u2264 10\u207b\u2076"], [-4, "0.0001"], [-2, "0.01"], [0, "0.5"], [2, "0.99"], [4, "0.9999"]]);

export class Posterior {
  constructor() {
    this.picture = el("div", { class: "plot" });
    this.caption = el("p", { class: "note" });
    /** @type {[Layer, RoundChunk] | null} */
    this.shown = null;
    const again = () => this.shown && this.draw(...this.shown);
    onResize(this.picture, again);
    onScheme(again);
    this.element = el(
      "div",
      { class: "posterior" },
      this.picture,
      this.caption,
      saveButtons((how) => this.save(how)),
    );
    this.element.hidden = true;
  }

  /** @param {import("./save.js").Save} how */
  save(how) {
    const svg = this.picture.querySelector("svg");
    if (svg) how("posterior", svg);
  }

  /** @param {Layer} layer @param {RoundChunk | null} chunk Null where no posterior decides. */
  show(layer, chunk) {
    this.element.hidden = !chunk?.posterior;
    this.shown = chunk?.posterior ? [layer, chunk] : null;
    if (this.shown) this.draw(...this.shown);
  }

  /** @param {Layer} layer @param {RoundChunk} chunk */
  draw(layer, chunk) {
    if (!this.picture.clientWidth) return;
    const { bars, least, unknown } = counted(chunk);
    const rules = [
      { at: least.prefix, label: "prefixes kept from" },
      { at: least.word, label: "words kept from" },
    ].filter(({ at }) => Number.isFinite(at)).sort((a, b) => a.at - b.at);
    const chart = histogram({
      width: Math.max(this.picture.clientWidth, 280),
      label: `Candidates of layer ${layer.layer} by posterior probability`,
      x: {
        label: "posterior probability that enough clients hold a candidate (log odds) \u2192",
        domain: [-WIDEST, WIDEST],
        ticks: [...TICKS.keys()],
        tickFormat: (/** @type {number} */ tick) => TICKS.get(tick) ?? "",
      },
      bars,
      title: (bar) => `about ${number(Math.round(bar.count))} candidates\n${bar.kind.label}`,
      marks: [
        Plot.ruleX(rules, { x: ({ at }) => logOdds(at), stroke: color("ink"), strokeWidth: 1.5, strokeDasharray: "4 3" }),
        // The labels stand away from each other.
        ...rules.map((rule, i) =>
          Plot.text([rule], {
            x: ({ at }) => logOdds(at),
            frameAnchor: "top",
            dy: -14,
            dx: i ? 4 : -4,
            textAnchor: i ? "start" : "end",
            text: ({ at, label }) => `${label} ${probability(at)}`,
            fill: "currentColor",
          }),
        ),
      ],
    });
    fill(this.picture, chart);
    fill(
      this.caption,
      "Recorded candidates, each sampled one counted for all that it stands for. ",
      unknown ? `About ${number(Math.round(unknown))} dropped prefixes are left out, too unlikely for their probability to be computed.` : null,
    );
  }
}

/** @param {number} value */
function logOdds(value) {
  const odds = Math.log10(value / (1 - value));
  return Math.min(Math.max(odds, -WIDEST), WIDEST - STEP / 2);
}

/**
 * Count a round's candidates by kind and posterior probability.
 * @param {RoundChunk} chunk
 */
function counted(chunk) {
  const posterior = chunk.posterior ?? [];
  const least = { prefix: Infinity, word: Infinity };
  /** @type {Map<string, {from: number, to: number, count: number, kind: typeof KINDS[0]}>} */
  const bars = new Map();
  let unknown = 0;
  posterior.forEach((value, i) => {
    if (value === null) {
      unknown += chunk.stands_for[i];
      return;
    }
    const isKept = chunk.fate[i] !== DROPPED;
    if (isKept) {
      const what = chunk.is_word[i] ? "word" : "prefix";
      least[what] = Math.min(least[what], value);
    }
    const kind = KINDS[2 * Number(!isKept) + Number(chunk.true_clients[i] === 0)];
    const from = Math.floor(logOdds(value) / STEP) * STEP;
    const key = `${from} ${kind.column}`;
    const bar = bars.get(key) ?? { from, to: from + STEP, count: 0, kind };
    bar.count += chunk.stands_for[i];
    bars.set(key, bar);
  });
  // In the order of the legend, so that bars of one kind stand on one height.
  const ordered = [...bars.values()].sort((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind));
  return { bars: ordered, least, unknown };
}
