// What is said of the prefix or word that the reader points at.

import { bdi, el } from "./dom.js";
import { byPosterior, byVotes, isValidation, roundName } from "./rounds.js";
import { fakeShare, number, perClient, probability, shown } from "./text.js";
import { DROPPED, WORD } from "./trie.js";

/** @typedef {import("./trie.js").Trie} Trie */
/** @typedef {import("./trie.js").TrieNode} TrieNode */
/** @typedef {import("./rounds.js").Layer} Layer */

/**
 * @param {TrieNode | null} node
 * @param {object} context
 * @param {Trie | null} context.trie
 * @param {Layer[]} context.layers The rounds of the trie's pass; none of two runs laid over each other.
 * @param {boolean} context.validates Whether a validation round decides which candidates are discovered.
 * @returns {Node[]}
 */
export function detailsOf(node, { trie, layers, validates }) {
  if (!node || !node.parent) {
    return [el("span", { class: "hint" }, "Point at a prefix, or move with the arrow keys; click or Enter zooms in.")];
  }
  const head = el("strong", {}, bdi(shown(node.prefix)), ` ${node.isWord ? "word" : "prefix"}`);
  if (!node.layer) return [head, document.createTextNode(" was not asked about: the first layers would have dropped nothing.")];
  const low = node.estimate - 1.96 * node.stdError, high = node.estimate + 1.96 * node.stdError;
  const layer = layers.find((each) => each.layer === node.layer);
  const truth = node.trueClients < 0 ? "not counted yet" : number(node.trueClients);
  return [
    head,
    el(
      "dl",
      { class: "facts" },
      ...pairs([
        ["round", `${layer ? roundName(layer) : `layer ${node.layer}`}, ${fateOf(node, layer, validates)}`],
        ["votes", number(node.votes)],
        .../** @type {[string, string][]} */ (Number.isFinite(node.fakeVotes) ? [["votes of fake clients", fakeShare(node)]] : []),
        ...(layer ? deciding(node, layer, trie) : []),
        ["z", number(Number.isFinite(node.z) ? node.z : node.z > 0 ? "inf" : "-inf")],
        ["estimated contributions in the cohort", `${number(Math.round(node.estimate))} (95%: ${number(Math.round(low))} to ${number(Math.round(high))})`],
        ["contributions per client asked", perClient(node.share)],
        [node.isWord ? "true clients" : "true clients, counted once for each of their words", truth],
      ]),
    ),
  ];
}

/** @param {TrieNode} node @param {Layer | undefined} layer @param {boolean} validates */
function fateOf(node, layer, validates) {
  if (node.fate === DROPPED) return "dropped";
  if (node.fate !== WORD) return "kept";
  if (!validates || (layer && isValidation(layer))) return "discovered";
  const returned = node.validation?.returned ? ", returned by the validation round" : "";
  return `became a candidate${node.rejected ? ", not returned by the validation round" : returned}`;
}

/**
 * Return what decided whether the round kept a candidate.
 * @param {TrieNode} node
 * @param {Layer} layer
 * @param {Trie | null} trie
 * @returns {[string, string][]}
 */
function deciding(node, layer, trie) {
  if (byVotes(layer)) return [["threshold", number(layer.threshold)]];
  if (!byPosterior(layer) || !trie) return [];
  const own = Number.isFinite(node.posterior) ? probability(node.posterior) : "not computed, as too unlikely";
  const least = trie.leastPosterior(layer.layer, node.isWord);
  return [["posterior probability", `${own}${Number.isFinite(least) ? ` (kept from ${probability(least)})` : ""}`]];
}


/** @param {[string, string][]} rows */
function pairs(rows) {
  return rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)));
}
