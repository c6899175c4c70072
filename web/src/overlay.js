// Two runs laid over each other: what each found and lost, and where they parted.

import * as Plot from "@observablehq/plot";
import { color, onScheme } from "./colors.js";
import { chunk, rowsOf } from "./data.js";
import { el, fill, onResize, section } from "./dom.js";
import { Icicle } from "./icicle.js";
import { Player } from "./player.js";
import { isValidation, layersOf, lossOf, roundName, roundNames } from "./rounds.js";
import { loadRounds } from "./run.js";
import { saveButtons } from "./save.js";
import { number, percent, shown } from "./text.js";
import { Trie } from "./trie.js";
import { wordTable } from "./words.js";

/** @typedef {import("./types.js").Run} Run */
/** @typedef {import("./types.js").RunManifest} RunManifest */

export class Overlay {
  /** @param {RunManifest} page */
  constructor(page) {
    this.runs = page.runs;
    const [a, b] = this.runs.map((run) => shown(run.name));
    this.icicle = new Icicle({ name: "tries", depth: Math.max(...this.runs.map((run) => run.depth)), overlaid: [a, b], validates: this.runs.some((run) => run.validates) });
    this.player = new Player((step) => this.icicle.reveal(this.layers[step]));
    this.layers = [...new Set(this.runs.flatMap((run) => layersOf(run).map((each) => each.layer)))].sort((x, y) => x - y);
    this.picture = el("div", { class: "plot" });
    this.summary = el("ul", { class: "summary" });
    this.words = el("div", {});
    const both = this.runs.every((run) => run.rounds.length);
    this.element = el(
      "div",
      { class: "run" },
      section("What each found", null, this.summary),
      section(
        "Coverage by layer",
        "Share of all new-word contributions that fall on the words found up to a round.",
        this.picture,
        saveButtons((how) => this.save(how)),
      ),
      both ? el("div", { class: "pinned" }, this.player.element) : null,
      both
        ? section(
            "Where they parted",
            "Both tries in one: colors say which run kept a prefix. Where a column changes its color, one of them lost what comes below. Passes of one run are laid over each other, too.",
            this.icicle.element,
          )
        : null,
      section(
        "Words of both",
        "What only one of them found, and the round in which the other one lost it (of the missed words with the most clients).",
        this.words,
      ),
    );
    void this.load(both);
    onScheme(() => this.draw());
    onResize(this.picture, () => this.draw());
  }

  /** @param {boolean} both */
  async load(both) {
    void this.showWords();
    if (!both) return;
    const rounds = await Promise.all(this.runs.map((run, i) => loadRounds(run, () => true, i + 1)));
    this.icicle.show(Trie.of(rounds.flat()));
    this.player.set(this.layers.map((layer) => this.nameOf(layer)), this.layers.length - 1);
  }

  /** Return what the rounds of one number are called. @param {number} number */
  nameOf(number) {
    const named = this.runs.flatMap((run) => layersOf(run).filter((each) => each.layer === number).map((each) => ({ run, each })));
    const validations = named.filter(({ each }) => isValidation(each));
    if (validations.length === named.length) return roundName(named[0].each);
    return `layer ${number}${validations.map(({ run }) => `, validation round of ${shown(run.name)}`).join("")}`;
  }

  draw() {
    if (!this.picture.clientWidth) return;
    const points = this.runs.flatMap((run) => {
      const layers = layersOf(run), names = roundNames(layers);
      return layers.map((layer, step) => ({
        run: shown(run.name),
        step: step + 1,
        coverage: layer.coverage,
        title: `${shown(run.name)}\n${names[step]}\n${percent(layer.coverage)}`,
      }));
    });
    const names = this.runs.map((run) => shown(run.name));
    const chart = Plot.plot({
      width: Math.max(this.picture.clientWidth || 640, 280),
      height: 240,
      marginLeft: 48,
      style: { background: "transparent", fontSize: "12px" },
      ariaLabel: "Coverage by layer",
      x: { label: "rounds \u2192", ticks: 8, tickFormat: "d" },
      y: { label: "\u2191 coverage, %", grid: true, percent: true, zero: true },
      color: { legend: true, domain: names, range: [color("only-a"), color("only-b")] },
      marks: [
        Plot.lineY(points, { x: "step", y: "coverage", stroke: "run", strokeWidth: 2 }),
        Plot.dot(points, { x: "step", y: "coverage", stroke: "run", fill: "run", symbol: "run", title: "title", tip: true }),
      ],
    });
    fill(this.picture, chart);
  }

  /** @param {import("./save.js").Save} how */
  save(how) {
    const svgs = this.picture.querySelectorAll("svg");
    if (svgs.length) {
      const keys = this.runs.map((run, i) => ({ label: shown(run.name), color: color(i ? "only-b" : "only-a") }));
      how("coverage", /** @type {SVGSVGElement} */ (svgs[svgs.length - 1]), keys);
    }
  }

  async showWords() {
    const [first, second] = this.runs;
    const found = await Promise.all(
      this.runs.map(async (run) => run.words ? rowsOf(await chunk(run.words)) : []),
    );
    const missed = await Promise.all(
      this.runs.map(async (run) => {
        const rows = run.missed ? rowsOf(await chunk(run.missed)) : [];
        return new Map(rows.map((row) => [row.word, row]));
      }),
    );
    /** @type {Map<string, any>} */
    const words = new Map();
    found.forEach((rows, i) => {
      for (const row of rows) {
        const known = words.get(row.word) ?? { word: row.word, true_clients: row.true_clients, by: 0 };
        known.by |= i + 1;
        known[i ? "estimate_b" : "estimate_a"] = row.estimated_clients;
        words.set(row.word, known);
      }
    });
    const rows = [...words.values()];
    for (const row of rows) {
      const other = row.by === 1 ? 1 : 0;
      const at = row.by === 3 ? null : missed[other].get(row.word);
      row.lost = at ? lossOf(this.runs[other], at) : "";
    }
    const names = ["", shown(first.name), shown(second.name), "both"];
    for (const row of rows) row.found_by = names[row.by];
    const real = rows.filter((row) => row.true_clients > 0);
    /** @param {number} by */
    const say = (by) => {
      const all = rows.filter((row) => row.by === by).length, held = real.filter((row) => row.by === by).length;
      return `${number(all)} words, of which clients hold ${number(held)}`;
    };
    fill(
      this.summary,
      el("li", {}, `Both found ${say(3)}.`),
      el("li", {}, `Only ${names[1]} found ${say(1)}.`),
      el("li", {}, `Only ${names[2]} found ${say(2)}.`),
    );
    fill(
      this.words,
      wordTable({
        name: "both",
        rows,
        note: (seen) => this.belowZero(seen),
        sorted: "true_clients",
        filters: [
          { value: "one", label: "found by one of them", keeps: (row) => row.by !== 3 },
          { value: "a", label: `only ${names[1]}`, keeps: (row) => row.by === 1 },
          { value: "b", label: `only ${names[2]}`, keeps: (row) => row.by === 2 },
          { value: "both", label: "both", keeps: (row) => row.by === 3 },
          { value: "false", label: "held by no client", keeps: (row) => !row.true_clients },
          { value: "all", label: "all", keeps: () => true },
        ],
        columns: [
          { name: "word", label: "word", text: true },
          { name: "found_by", label: "found by", text: true },
          { name: "true_clients", label: "true holders" },
          { name: "estimate_a", label: `estimated ${this.runs[0].estimated}, ${names[1]}`, cell: (row) => number(rounded(row.estimate_a)) },
          { name: "estimate_b", label: `estimated ${this.runs[1].estimated}, ${names[2]}`, cell: (row) => number(rounded(row.estimate_b)) },
          { name: "lost", label: "lost by the other in", text: true },
        ],
      }),
    );
  }

  /** Return why estimates of some rows are below 0. @param {any[]} rows */
  belowZero(rows) {
    const notes = this.runs.map((run, i) =>
      rows.some((row) => row[i ? "estimate_b" : "estimate_a"] < 0) ? `${shown(run.name)}: ${run.below_zero}` : "",
    );
    return notes.filter(Boolean).join(" ");
  }
}

/** @param {number | undefined} value */
function rounded(value) {
  return value === undefined ? null : Math.round(value);
}

