// One run: its trie layer by layer, votes, the search for a word, words, and what it can claim.

import { chunk, rowsOf } from "./data.js";
import { Distribution } from "./distribution.js";
import { el, fill, section } from "./dom.js";
import { Icicle } from "./icicle.js";
import { Player } from "./player.js";
import { Posterior } from "./posterior.js";
import { byPosterior, isValidation, layersOf, lossOf, roundNames } from "./rounds.js";
import { searchBox } from "./search.js";
import { configuration, textTable } from "./tables.js";
import { number, percent, shown } from "./text.js";
import { Trie } from "./trie.js";
import { wordTable } from "./words.js";

/** @typedef {import("./types.js").Run} Run */
/** @typedef {import("./types.js").RunManifest} RunManifest */
/** @typedef {import("./rounds.js").Layer} Layer */

export class RunView {
  /** @param {Run} run @param {RunManifest} page */
  constructor(run, page) {
    this.run = run;
    this.page = page;
    /** @type {Map<number, Promise<Trie>>} */
    this.tries = new Map();
    this.pass = 0;
    this.icicle = new Icicle({ name: "trie", depth: run.depth, overlaid: null, validates: run.validates, isLive: page.live, hasFakes: Boolean(run.fakes) });
    this.votes = new Distribution(page.live, Boolean(run.fakes));
    this.posterior = new Posterior();
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
      run.fakes ? el("p", { class: "missing" }, run.fakes) : null,
      run.note && !page.live ? el("p", { class: "missing" }, run.note) : null,
      hasTrie
        ? el("div", { class: "pinned" }, this.player.element)
        : null,
      hasTrie
        ? section(
            "The trie as it grows",
            `Each row is one more symbol, each block a prefix; its width is its estimated share of the cohort's contributions (blocks of one parent share what it has). What was dropped is shown only where clients hold it. ${kept}`,
            this.icicle.element,
          )
        : null,
      hasTrie
        ? section(
            "Candidates of a round",
            "All candidates of the chosen round, counted by their votes. Where the colors overlap, votes do not distinguish what clients hold from noise.",
            this.votes.element,
            this.posterior.element,
          )
        : null,
      hasTrie
        ? section(
            "Outcome of a word",
            `Type a word to see its path, the round in which it was lost, and why. Estimates of a path count contributions of the clients that the round asked, its cohort.${known(run)}`,
            this.search.element,
          )
        : null,
      section(
        "Words",
        "What was found, and the missed words with the most clients. False words are those that no client holds; significant ones have votes that chance hardly explains.",
        this.words,
      ),
      calendar(run),
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
      run.coverage === null ? null : `words found cover ${percent(run.coverage)} of all new-word contributions`,
      run.beside_lexicon ? "rare words outside the lexicon count as held by no client" : null,
    ];
    this.facts.textContent = `${run.title} on ${shown(run.population)}: ${facts.filter(Boolean).join(", ")}.`;
    const names = roundNames(layers);
    const last = layers.at(-1);
    // A validation round is about the words of all passes.
    if (last && isValidation(last)) this.tries.clear();
    else this.tries.delete(last?.pass ?? 0);
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
    void this.showPosterior(layer);
    if (this.pass !== layer.pass) {
      this.pass = layer.pass;
      const trie = await this.trieOf(layer.pass);
      if (this.pass !== layer.pass) return;
      this.icicle.layers = layersOf(this.run).filter((each) => each.pass === layer.pass);
      this.icicle.show(trie);
    }
    this.icicle.reveal(layer.layer);
  }

  /** @param {Layer} layer */
  async showPosterior(layer) {
    const name = this.run.rounds.find(([pass, each]) => pass === layer.pass && each === layer.layer)?.[2];
    const decides = byPosterior(layer) && !this.page.live && name;
    const round = decides ? await chunk(name) : null;
    // Meanwhile the reader may have gone on.
    if (layersOf(this.run)[this.player.step]?.layer === layer.layer) this.posterior.show(layer, round);
  }

  /** @param {number} pass */
  trieOf(pass) {
    let trie = this.tries.get(pass);
    if (!trie) {
      trie = loadRounds(this.run, (layer) => layer.pass === pass || isValidation(layer), 1)
        .then((rounds) => Trie.of(rounds, { pass, isWhole: !this.page.live }));
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
    const layers = layersOf(this.run);
    fill(
      this.words,
      wordTable({
        name: "words",
        rows: [...found, ...missed],
        note: (rows) => rows.some((row) => row.estimated_clients < 0) ? this.run.below_zero : null,
        sorted: "true_clients",
        open: this.run.rounds.length ? (row) => {
          void this.search.look(row.word);
          this.search.element.scrollIntoView({ block: "center" });
        } : undefined,
        filters: [
          { value: "found", label: "found", keeps: (row) => row.state === "found" },
          { value: "significant", label: "significant", keeps: (row) => Boolean(row.is_significant) },
          { value: "false", label: "false: found, held by no client", keeps: (row) => row.state === "found" && !row.true_clients },
          { value: "missed", label: "missed", keeps: (row) => row.state === "missed" },
          { value: "all", label: "found and missed", keeps: () => true },
        ],
        columns: [
          { name: "word", label: "word", text: true },
          { name: "state", label: "state", text: true, cell: (row) => stateOf(this.run, row) },
          { name: "estimated_clients", label: `estimated ${this.run.estimated}`, help: `${this.run.estimated === "contributors" ? "Clients that say it when asked, at most its holders; scaled" : "Scaled"} from the cohort to the population; with 2 standard errors.`, cell: (row) => row.state === "found" ? `${number(Math.round(row.estimated_clients))} \u00b1 ${number(Math.round(2 * row.std_error))}` : "\u2013" },
          { name: "z", label: "z", help: `How far above noise its votes lie${layers.some((each) => each.kept_by === "evidence") ? ": those of the validation round and of all layers after it became a candidate" : ""}.` },
          ...(found.some((row) => row.contributing_clients !== undefined) ? [{ name: "contributing_clients", label: "true contributors", help: "How many would say it if all were asked." }] : []),
          { name: "true_clients", label: "true holders" },
          { name: "true_count", label: "true count", help: "How often it was typed." },
          { name: "pass", label: "pass" },
          { name: "layer", label: "round", help: this.run.validates ? "Where it became a candidate, or was lost." : "Where it was found, or lost.", cell: (row) => roundOf(layers, row) },
        ],
      }),
    );
  }
}

/** @param {Run} run */
function calendar({ calendar: said }) {
  if (!said) return null;
  return section(
    "Calendar",
    "When each round opened and closed, in days since the first one opened; how long of that it waited beyond its deadline, in hours; and how many of the asked clients answered, of which fewer than the least are not accepted.",
    said.missed ? el("p", { class: "missing" }, said.missed) : null,
    textTable(said.rounds),
  );
}

/** @param {Run} run */
function known({ known: list }) {
  if (!list) return "";
  return ` Devices report no word of their list of known words, ${shown(list.name)}${list.chunk ? "" : ", which this page does not hold"}.`;
}

/** @param {Layer[]} layers @param {any} row */
function roundOf(layers, row) {
  const layer = layers.find((each) => each.pass === row.pass && each.layer === row.layer);
  return layer && isValidation(layer) ? "validation" : number(row.layer || null);
}

/** @param {Run} run @param {any} row */
function stateOf(run, row) {
  if (row.state === "missed") return `missed: ${row.layer ? lossOf(run, row) : shown(row.why)}`;
  if (!row.true_clients) return "false";
  return row.is_significant ? "significant" : "within the noise";
}

/**
 * Return the recorded candidates of some of a run's rounds.
 * @param {Run} run
 * @param {(layer: Layer) => boolean} isWanted
 * @param {number} bit The run's, where two are laid over each other.
 */
export async function loadRounds(run, isWanted, bit) {
  const layers = layersOf(run);
  const rounds = run.rounds.map(([pass, number, name]) => ({
    name,
    layer: /** @type {Layer} */ (layers.find((each) => each.pass === pass && each.layer === number)),
  }));
  return Promise.all(
    rounds
      .filter(({ layer }) => isWanted(layer))
      .map(async ({ name, layer }) => ({ chunk: await chunk(name), layer, run: bit })),
  );
}
