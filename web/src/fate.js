// Outcome of a word: where it was lost, and why.

import { byPosterior, byVotes, isValidation, layersOf, roundName } from "./rounds.js";
import { number, probability, shown, symbolsOf } from "./text.js";
import { DROPPED, WORD } from "./trie.js";

/** @typedef {import("./types.js").Run} Run */
/** @typedef {import("./trie.js").Trie} Trie */
/** @typedef {import("./trie.js").TrieNode} TrieNode */
/** @typedef {import("./rounds.js").Layer} Layer */

/**
 * @typedef {object} Fate
 * @property {TrieNode[]} path
 * @property {boolean} found
 * @property {boolean} isCandidate Whether it became a candidate of the validation round.
 * @property {string} verdict
 */

/**
 * Return the outcome of a word in a pass.
 * @param {Run} run
 * @param {number} pass
 * @param {Trie} trie
 * @param {string} word
 * @param {any | null} missed The word's row among the missed ones.
 * @returns {Fate}
 */
export function fateOf(run, pass, trie, word, missed) {
  const symbols = symbolsOf(word.normalize("NFC"));
  const alphabet = new Set(symbolsOf(run.alphabet).map((symbol) => symbol.replace(/^\u200b/, "")));
  const layers = layersOf(run).filter((layer) => layer.pass === pass);
  const foreign = symbols.find((symbol) => !alphabet.has(symbol));
  if (foreign !== undefined) {
    return lost([], `Its symbol ${shown(foreign)} is not in the alphabet, so no client can report it.`);
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
      const decided = layers.find((each) => each.layer > before && !isValidation(each)) ?? layers.at(-1) ?? null;
      return lost(path, `${isWord ? "The word itself" : `Its prefix ${shown(symbols.slice(0, length).join(""))}`} was dropped. ${unrecorded(decided, missed, pass)}`);
    }
    path.push(node);
    if (node.isWord && layer && (node.fate === WORD || isValidation(layer))) return candidate(run, pass, path, node, layer);
    if (node.fate === DROPPED && layer) return lost(path, why(run, pass, trie, node, layer));
  }
  return lost(path, `It has ${number(symbols.length)} symbols, more than the trie's ${run.depth} layers: it is longer than can be found.`);
}

/** @param {TrieNode[]} path @param {string} verdict @returns {Fate} */
function lost(path, verdict) {
  return { path, found: false, isCandidate: false, verdict };
}

/**
 * Return the outcome of a word that a layer kept, or that the validation round asked about.
 * @param {Run} run
 * @param {number} pass
 * @param {TrieNode[]} path
 * @param {TrieNode} node
 * @param {Layer} layer Where it became a candidate.
 * @returns {Fate}
 */
function candidate(run, pass, path, node, layer) {
  const since = isValidation(layer) ? "The validation round asked about it" : `It became a candidate in ${roundName(layer)}`;
  /** @param {string} verdict */
  const open = (verdict) => ({ path, found: false, isCandidate: true, verdict: `${since}; ${verdict}` });
  if (!run.validates) return { path, found: true, isCandidate: false, verdict: `It was discovered in ${roundName(layer)}.` };
  const validation = layersOf(run).find(isValidation);
  const test = validation?.kept_by === "evidence"
    ? " The test adds up its votes of that round and of all layers after it became a candidate."
    : "";
  if (node.validation?.returned) {
    return { path, found: true, isCandidate: true, verdict: `It was discovered. ${since}, and the validation round returned it.${test}` };
  }
  if (!validation) return open("the validation round, which decides, has not been asked yet.");
  if (!run.words) return open("the report says whether the validation round returned it.");
  const told = node.validation ? held(run, pass, node, validation, node.validation) : node.trueClients === 0 ? "No client holds it." : "";
  return open(`it was not discovered: the validation round did not return it.${test} ${told}`.trim());
}

/** @param {Layer | null} layer @param {any | null} missed @param {number} pass */
function unrecorded(layer, missed, pass) {
  const least = layer && byVotes(layer) ? ` ${named(layer)} kept from ${number(layer.threshold)} votes on.` : "";
  if (missed && missed.pass === pass && missed.layer) return `It had ${number(missed.votes)} votes there.${least}`;
  return `Its votes are not in the recorded sample of dropped candidates, so they were not among the highest.${least}`;
}

/**
 * Return why a layer dropped a candidate.
 * @param {Run} run
 * @param {number} pass
 * @param {Trie} trie
 * @param {TrieNode} node
 * @param {Layer} layer
 */
function why(run, pass, trie, node, layer) {
  const what = `${named(layer)} dropped ${shown(node.prefix)}${node.isWord ? " (the whole word)" : ""}`;
  if (!byPosterior(layer)) {
    return `${what}: it had ${number(node.votes)} votes, and the fewest votes of a kept candidate were ${number(layer.threshold)}${node.votes < layer.threshold ? "" : ", a tie"}. ${held(run, pass, node, layer, node)}`;
  }
  const least = trie.leastPosterior(layer.layer, node.isWord);
  const kept = `${node.isWord ? "words became candidates" : "prefixes were kept"} from ${probability(least)} on`;
  const reason = Number.isFinite(node.posterior)
    ? `the posterior probability that enough clients hold it was ${probability(node.posterior)}${Number.isFinite(least) ? `, and ${kept}` : ""}.`
    : `it was too unlikely for its posterior probability to be computed${Number.isFinite(least) ? `; ${kept}` : ""}.`;
  return `${what}: ${reason} That weighs the votes of this layer and of all before it. ${held(run, pass, node, layer, node)}`;
}

/**
 * Return how many clients held a candidate, how many contributed it, and what that says.
 * @param {Run} run
 * @param {number} pass
 * @param {TrieNode} node
 * @param {Layer} layer
 * @param {{estimate: number, stdError: number}} said
 */
function held(run, pass, node, layer, { estimate, stdError }) {
  if (node.trueClients < 0) return "";
  if (node.trueClients === 0) {
    const what = node.isWord ? "No client holds it" : "No client holds a word that begins so";
    return pass === 1 ? `${what}.` : `${what}, or earlier passes found all such.`;
  }
  const holders = (node.trueClients * layer.num_clients) / run.clients;
  const low = estimate - 2 * stdError, high = estimate + 2 * stdError;
  const contributed = `the votes say that ${number(Math.max(0, Math.round(low)))} to ${number(Math.max(0, Math.round(high)))} contributed it`;
  const asked = `About ${number(Math.round(holders))} of the ${number(layer.num_clients)} clients that were asked held it, and ${contributed}.`;
  if (high < holders) {
    return `${asked} Not sampled: a client contributes at most ${number(run.max_items)} of its words, and more held it than contributed it.`;
  }
  if (layer.threshold_z === null) return asked;
  const needed = layer.threshold_z * layer.noise_std;
  if (holders < Math.max(needed, 0)) {
    return `${asked} Too few: at the threshold, an estimate is about ${number(Math.round(needed))} contributions.`;
  }
  return `${asked} Bad luck: enough held it, and noise of about \u00b1${number(Math.round(2 * layer.noise_std))} contributions hid it.`;
}

/** @param {Layer} layer */
function named(layer) {
  const name = roundName(layer);
  return isValidation(layer) ? `The ${name}` : `${name[0].toUpperCase()}${name.slice(1)}`;
}
