// What became of a word: its path through the trie, and where and why it was lost.

import { bdi, el, fill } from "./dom.js";
import { number, perClient, shown } from "./text.js";
import { DROPPED, WORD, isRecount, layersOf } from "./trie.js";

/** @typedef {import("./types.js").Run} Run */
/** @typedef {import("./trie.js").Trie} Trie */
/** @typedef {import("./trie.js").TrieNode} TrieNode */
/** @typedef {import("./trie.js").Layer} Layer */

/**
 * @typedef {object} Fate
 * @property {TrieNode[]} path
 * @property {boolean} found
 * @property {string} verdict
 * @property {Layer | null} at The round that decided.
 */

/**
 * Return what became of a word in a pass.
 * @param {Run} run
 * @param {number} pass
 * @param {Trie} trie
 * @param {string} word
 * @param {any | null} missed The word's row among the missed ones.
 * @returns {Fate}
 */
export function fateOf(run, pass, trie, word, missed) {
  const symbols = [...word];
  const layers = layersOf(run).filter((layer) => layer.pass === pass);
  const foreign = symbols.find((symbol) => !run.alphabet.includes(symbol));
  if (foreign !== undefined) {
    return lost([], `Its symbol ${shown(foreign)} is not in the alphabet, so no client can report it.`, null);
  }
  /** @type {TrieNode[]} */
  const path = [];
  for (let length = 1; length <= symbols.length + 1; length += 1) {
    const isWord = length > symbols.length;
    const node = trie.get(symbols.slice(0, length).join(""), isWord);
    const layer = layers.find((each) => each.layer === node?.layer) ?? null;
    if (!node) {
      if (symbols.length > run.depth) break;
      const before = path.at(-1)?.layer ?? 0;
      const decided = layers.find((each) => each.layer > before && !isRecount(each)) ?? layers.at(-1) ?? null;
      return lost(path, `${isWord ? "The word itself" : `Its prefix ${shown(symbols.slice(0, length).join(""))}`} was dropped. ${unrecorded(decided, missed, pass)}`, decided);
    }
    path.push(node);
    if (node.fate === DROPPED && layer) return lost(path, why(run, node, layer), layer);
    if (node.isWord && node.rejected) {
      const recount = layers.find((each) => each.layer === node.rejected) ?? null;
      return lost(path, `It was found in layer ${node.layer}, and taken back by the recount in layer ${node.rejected}: fresh votes did not say that it is real.`, recount);
    }
    if (node.isWord && node.fate === WORD) {
      return { path, found: true, verdict: `It was found in layer ${node.layer}.`, at: layer };
    }
  }
  return lost(path, `It has ${number(symbols.length)} symbols, more than the trie's ${run.depth} layers: it is longer than can be found.`, null);
}

/** @param {TrieNode[]} path @param {string} verdict @param {Layer | null} at @returns {Fate} */
function lost(path, verdict, at) {
  return { path, found: false, verdict, at };
}

/** @param {Layer | null} layer @param {any | null} missed @param {number} pass */
function unrecorded(layer, missed, pass) {
  if (missed && missed.pass === pass && missed.layer) {
    return `It had ${number(missed.votes)} votes in layer ${missed.layer}, which kept from ${number(missed.threshold)} on.`;
  }
  const least = layer ? ` Layer ${layer.layer} kept from ${number(layer.threshold)} votes on.` : "";
  return `Its votes are not in the recorded sample of dropped candidates, so they were not among the highest.${least}`;
}

/**
 * Return why a layer dropped a candidate.
 * @param {Run} run
 * @param {TrieNode} node
 * @param {Layer} layer
 */
export function why(run, node, layer) {
  const said = `Layer ${layer.layer} dropped ${shown(node.prefix)}${node.isWord ? " (the whole word)" : ""}: it had ${number(node.votes)} votes, and the fewest votes of a kept candidate were ${number(layer.threshold)}.`;
  if (node.trueClients < 0) return said;
  if (node.trueClients === 0) return `${said} No client that was left held it: its words are held by nobody, or an earlier pass found them.`;
  const held = (node.trueClients * layer.num_clients) / run.clients;
  const low = node.estimate - 2 * node.stdError, high = node.estimate + 2 * node.stdError;
  const contributed = `the votes say that ${number(Math.max(0, Math.round(low)))} to ${number(Math.max(0, Math.round(high)))} contributed it`;
  const asked = `About ${number(Math.round(held))} of the ${number(layer.num_clients)} clients that were asked held it, and ${contributed}.`;
  const judged = layer.kept_by === "posterior" ? " This protocol judges by all its layers, so votes alone do not decide." : "";
  if (high < held) {
    return `${said} ${asked} Not sampled: a client contributes at most ${number(run.max_items)} of its words, and more held it than contributed it.${judged}`;
  }
  if (layer.threshold_z === null) return `${said} ${asked}${judged}`;
  const needed = layer.threshold_z * layer.noise_std;
  if (held < Math.max(needed, 0)) {
    return `${said} ${asked} Too few: at the threshold, an estimate is about ${number(Math.round(needed))} contributions.${judged}`;
  }
  return `${said} ${asked} Bad luck: enough held it, and noise of about \u00b1${number(Math.round(2 * layer.noise_std))} contributions hid it.${judged}`;
}

/**
 * Return the search of a run.
 * @param {object} options
 * @param {Run} options.run
 * @param {(pass: number) => Promise<Trie>} options.trieOf
 * @param {() => Promise<any[]>} options.missed
 * @param {(fate: Fate, pass: number) => void} options.found Called with what is shown.
 */
export function searchBox({ run, trieOf, missed, found }) {
  const input = el("input", { type: "search", size: "24", maxlength: "20000", autocomplete: "off", spellcheck: "false" });
  const answer = el("div", { class: "answer", role: "status", "aria-live": "polite" });
  const form = el(
    "form",
    { class: "controls" },
    el("label", { class: "choice" }, "Word ", input),
    el("button", { type: "submit" }, "Find it"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void look(input.value);
  });

  /** @param {string} word */
  async function look(word) {
    input.value = word;
    if (!word) return;
    const passes = [...new Set(run.rounds.map(([pass]) => pass))];
    const row = (await missed()).find((each) => each.word === word) ?? null;
    const parts = [];
    for (const pass of passes) {
      const fate = fateOf(run, pass, await trieOf(pass), word, row);
      parts.push(part(fate, passes.length > 1 ? pass : 0));
      found(fate, pass);
      if (fate.found) break;
    }
    fill(
      answer,
      el("p", {}, el("strong", {}, bdi(shown(word))), row ? ` is held by ${number(row.true_clients)} clients, and was missed.` : ""),
      ...parts,
    );
  }

  /** @param {Fate} fate @param {number} pass */
  function part(fate, pass) {
    return el(
      "div",
      { class: fate.found ? "fate found" : "fate lost" },
      el("p", {}, pass ? `Pass ${pass}: ` : "", fate.verdict),
      fate.path.length
        ? el(
            "div",
            { class: "scroll" },
            el(
              "table",
              {},
              el("thead", {}, el("tr", {}, ["prefix", "layer", "votes", "z", "estimate \u00b1 2 std. errors", "per client", "true clients", ""].map((text, i) => el("th", { scope: "col", class: i === 0 ? "label" : null }, text)))),
              el("tbody", {}, fate.path.map(step)),
            ),
          )
        : null,
    );
  }

  /** @param {TrieNode} node */
  function step(node) {
    const asked = node.layer > 0;
    const fate = !asked ? "not asked" : node.fate === DROPPED ? "dropped" : node.rejected ? "taken back" : node.isWord ? "found" : "kept";
    return el(
      "tr",
      {},
      el("td", { class: "label" }, bdi(shown(node.prefix)), node.isWord ? " \u25a0" : ""),
      el("td", {}, asked ? node.layer : "\u2013"),
      el("td", {}, asked ? number(node.votes) : "\u2013"),
      el("td", {}, asked ? number(Number.isFinite(node.z) ? node.z : "inf") : "\u2013"),
      el("td", {}, asked ? `${number(Math.round(node.estimate))} \u00b1 ${number(Math.round(2 * node.stdError))}` : "\u2013"),
      el("td", {}, asked ? perClient(node.share) : "\u2013"),
      el("td", {}, asked && node.trueClients >= 0 ? number(node.trueClients) : "\u2013"),
      el("td", {}, fate),
    );
  }

  return { element: el("div", { class: "search" }, form, answer), look };
}
