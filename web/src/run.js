// One run: its trie layer by layer, votes, the search for a word, words, and what it can claim.

import { chunk } from "./data.js";
import { Distribution } from "./distribution.js";
import { el, fill, section } from "./dom.js";
import { Icicle } from "./icicle.js";
import { Player } from "./player.js";
import { searchBox } from "./search.js";
import { configuration, privacy } from "./tables.js";
import { number, percent, shown } from "./text.js";
import { Trie, layersOf, rowsOf } from "./trie.js";
import { wordTable } from "./words.js";

/** @typedef {import("./types.js").Run} Run */
/** @typedef {import("./types.js").RunManifest} RunManifest */
/** @typedef {import("./trie.js").Layer} Layer */

const WHY = /** @type {Record<string, string>} */ ({ dropped: "dropped" });

export class RunView {
  /** @param {Run} run @param {RunManifest} page */
  constructor(run, page) {
    this.run = run;
    this.page = page;
    /** @type {Map<number, Promise<Trie>>} */
    this.tries = new Map();
    this.pass = 0;
    this.icicle = new Icicle({ name: "trie", depth: run.depth, overlaid: null, isLive: page.live });
    this.votes = new Distribution(page.live);
    this.player = new Player((step) => void this.show(step));
    this.facts = el("p", { class: "facts-line" });
    this.search = searchBox({
      run,
      trieOf: (pass) => this.trieOf(pass),
      missed: () => this.missed(),
      found: (fate, pass) => {
        if (pass === this.pass) this.icicle.mark(fate.path);
      },
    });
    this.words = el("div", {});
    const { sample } = page;
    const kept = page.live
      ? `While it runs, a layer shows the ${number(page.most)} survivors with the most votes; the report has all, and says who holds them.`
      : `Of each layer, all that survived is here, and of what did not: the ${number(sample.nearest)} with the most votes, those of the ${number(sample.missed)} missed words with the most clients, and ${number(sample.sampled)} drawn uniformly.`;
    const hasTrie = run.rounds.length > 0 || page.live;
    this.element = el(
      "div",
      { class: "run" },
      this.facts,
      run.note && !page.live ? el("p", { class: "missing" }, run.note) : null,
      hasTrie
        ? el("div", { class: "pinned" }, this.player.element)
        : null,
      hasTrie
        ? section(
            "The trie as it grows",
            `Each row is one more symbol, each block a prefix; its width is its estimated share of all contributions (blocks of one parent share what it has). What was dropped is shown only where clients hold it. ${kept}`,
            this.icicle.element,
          )
        : null,
      hasTrie
        ? section(
            "Votes against the threshold",
            "All candidates of the chosen layer, counted by their votes. Where the colors overlap, votes cannot tell what clients hold from what chance made.",
            this.votes.element,
          )
        : null,
      hasTrie
        ? section(
            "What became of a word",
            "Type a word to see its path, the layer in which it was lost, and why.",
            this.search.element,
          )
        : null,
      section(
        "Words",
        "What was found, and the missed words with the most clients. False words are those that nobody holds; significant ones have votes that chance hardly explains.",
        this.words,
      ),
      privacy(run),
      configuration("", run.config),
    );
    this.refresh();
  }

  /** Take what is new: at the start, and live after each layer. */
  refresh() {
    const { run } = this;
    const layers = layersOf(run);
    const facts = [
      `${number(run.clients)} clients`,
      run.seed === null ? null : `seed ${run.seed}`,
      run.coverage === null ? null : `words found cover ${percent(run.coverage)} of all contributions`,
      run.beside_lexicon ? "rare words beside the lexicon count as held by nobody" : null,
    ];
    this.facts.textContent = `${run.title} on ${shown(run.population)}: ${facts.filter(Boolean).join(", ")}.`;
    const several = new Set(layers.map((layer) => layer.pass)).size > 1;
    const names = layers.map((layer) => `${several ? `pass ${layer.pass}, ` : ""}layer ${layer.layer}`);
    this.tries.delete(layers.at(-1)?.pass ?? 0);
    this.pass = 0;
    if (names.length) this.player.set(names, names.length - 1);
    if (run.words) void this.showWords();
    else fill(this.words, el("p", { class: "note" }, "They are known when the run has ended."));
  }

  /** @param {number} step */
  async show(step) {
    const layer = layersOf(this.run)[step];
    if (!layer) return;
    this.votes.show(this.run, layer);
    if (this.pass !== layer.pass) {
      this.pass = layer.pass;
      const trie = await this.trieOf(layer.pass);
      if (this.pass !== layer.pass) return;
      const own = layersOf(this.run).filter((each) => each.pass === layer.pass);
      this.icicle.thresholds = new Map(own.map((each) => [each.layer, each]));
      this.icicle.show(trie);
    }
    this.icicle.reveal(layer.layer);
  }

  /** @param {number} pass */
  trieOf(pass) {
    let trie = this.tries.get(pass);
    if (!trie) {
      trie = loadRounds(this.run, (each) => each === pass, 1).then((rounds) => Trie.of(rounds));
      this.tries.set(pass, trie);
    }
    return trie;
  }

  /** @returns {Promise<any[]>} */
  async missed() {
    return this.run.missed ? rowsOf(await chunk(this.run.missed)) : [];
  }

  async showWords() {
    const found = rowsOf(await chunk(/** @type {string} */ (this.run.words))).map((row) => ({ ...row, state: "found" }));
    const missed = (await this.missed()).map((row) => ({ ...row, state: "missed" }));
    fill(
      this.words,
      wordTable({
        name: "words",
        rows: [...found, ...missed],
        sorted: "true_clients",
        open: this.run.rounds.length ? (row) => {
          void this.search.look(row.word);
          this.search.element.scrollIntoView({ block: "center" });
        } : undefined,
        filters: [
          { value: "found", label: "found", keeps: (row) => row.state === "found" },
          { value: "significant", label: "significant", keeps: (row) => Boolean(row.is_significant) },
          { value: "false", label: "false: found, held by nobody", keeps: (row) => row.state === "found" && !row.true_clients },
          { value: "missed", label: "missed", keeps: (row) => row.state === "missed" },
          { value: "all", label: "found and missed", keeps: () => true },
        ],
        columns: [
          { name: "word", label: "word", text: true },
          { name: "state", label: "state", text: true, cell: (row) => stateOf(row) },
          { name: "estimated_clients", label: "estimated clients", help: "Scaled from the cohort to the population; with 2 standard errors.", cell: (row) => row.state === "found" ? `${number(Math.round(row.estimated_clients))} \u00b1 ${number(Math.round(2 * row.std_error))}` : "\u2013" },
          { name: "z", label: "z", help: "How far above noise its votes lie." },
          { name: "true_clients", label: "true clients" },
          { name: "true_count", label: "true count", help: "How often it was typed." },
          { name: "pass", label: "pass" },
          { name: "layer", label: "layer", help: "Where it was found, or lost." },
        ],
      }),
    );
  }
}

/** @param {any} row */
function stateOf(row) {
  if (row.state === "missed") return `missed: ${WHY[row.why] ?? shown(row.why)}`;
  if (!row.true_clients) return "false";
  return row.is_significant ? "significant" : "within the noise";
}

/**
 * Return the recorded candidates of some of a run's rounds.
 * @param {Run} run
 * @param {(pass: number) => boolean} isWanted
 * @param {number} bit The run's, where two are laid over each other.
 */
export async function loadRounds(run, isWanted, bit) {
  const layers = layersOf(run);
  const wanted = run.rounds.filter(([pass]) => isWanted(pass));
  return Promise.all(
    wanted.map(async ([pass, number, name]) => ({
      chunk: await chunk(name),
      layer: /** @type {Layer} */ (layers.find((each) => each.pass === pass && each.layer === number)),
      run: bit,
    })),
  );
}
