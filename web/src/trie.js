// The trie of a run's pass: which candidates there were, and how much mass each has.

import { byPosterior, isValidation } from "./rounds.js";
import { symbolsOf } from "./text.js";

/** @typedef {import("./types.js").RoundChunk} RoundChunk */
/** @typedef {import("./rounds.js").Layer} Layer */

export const DROPPED = 0, KEPT = 1, WORD = 2;

/**
 * @typedef {object} TrieNode
 * @property {string} prefix
 * @property {boolean} isWord
 * @property {number} depth Symbols, the end of a word counted.
 * @property {TrieNode | null} parent
 * @property {TrieNode[]} children
 * @property {number} layer 0 for prefixes that no round asked about.
 * @property {number} fate
 * @property {number} votes
 * @property {number} z
 * @property {number} estimate Contributions among the round's reports.
 * @property {number} stdError
 * @property {number} trueClients -1 where nobody has counted them.
 * @property {number} share Estimated contributions for each client that was asked.
 * @property {number} width Of the whole trie, which is 1.
 * @property {number} fakeVotes How many of the votes are those of fake clients; NaN without any.
 * @property {boolean} byFakes Whether nobody holds it and fake clients pushed it.
 * @property {number} posterior Probability that enough clients hold it; NaN where none decided.
 * @property {Validation | null} validation What the validation round says, if that is recorded.
 * @property {number} rejected Layer of the validation round that did not return the word; 0 for none.
 * @property {number} runs Which of the overlaid runs kept it: 1, 2, or 3 for both.
 */

/** @param {number | string | null} value */
function real(value) {
  if (value === "inf") return Infinity;
  if (value === "-inf") return -Infinity;
  return typeof value === "number" ? value : NaN;
}

/** A key of a candidate: a word and the prefix of the same symbols are two. */
/** @param {string} prefix @param {boolean} isWord */
export function keyOf(prefix, isWord) {
  return isWord ? `w${prefix}` : `p${prefix}`;
}

/**
 * @typedef {object} Validation
 * @property {boolean} returned
 * @property {number} votes
 * @property {number} z
 * @property {number} estimate Contributions among the round's reports.
 * @property {number} stdError
 * @property {number} share Estimated contributions for each client that was asked.
 * @property {number} fakeVotes
 */

/** @typedef {{chunk: RoundChunk, layer: Layer, run?: number}} Round */

export class Trie {
  /** @param {Map<string, TrieNode>} nodes @param {TrieNode} root @param {Map<string, number>} least */
  constructor(nodes, root, least) {
    this.nodes = nodes;
    this.root = root;
    this.least = least;
    this.depth = 0;
    for (const node of nodes.values()) this.depth = Math.max(this.depth, node.depth);
  }

  /**
   * Return the trie of some rounds.
   * @param {Round[]} rounds
   * @param {object} [options]
   * @param {number} [options.pass] Whose trie; of other passes' words it says nothing.
   * @param {boolean} [options.isWhole] Whether the rounds hold all that survived.
   */
  static of(rounds, { pass, isWhole = true } = {}) {
    const root = empty("", false, 0);
    root.fate = KEPT;
    root.width = 1;
    /** @type {Map<string, TrieNode>} */
    const nodes = new Map([["p", root]]);
    for (const round of rounds) add(nodes, round, pass === undefined || pass === round.layer.pass);
    if (isWhole) for (const round of rounds.filter(({ layer }) => isValidation(layer))) reject(nodes, round);
    const least = leastPosteriors(rounds);
    for (const node of [...nodes.values()]) link(nodes, node);
    measure(root);
    return new Trie(nodes, root, least);
  }

  /** Return the least posterior probability of what a layer kept; NaN if there is none. @param {number} layer @param {boolean} isWord */
  leastPosterior(layer, isWord) {
    return this.least.get(`${layer} ${isWord}`) ?? NaN;
  }

  /** @param {string} prefix @param {boolean} isWord */
  get(prefix, isWord) {
    return this.nodes.get(keyOf(prefix, isWord)) ?? null;
  }
}

/** @param {string} prefix @param {boolean} isWord @param {number} depth @returns {TrieNode} */
function empty(prefix, isWord, depth) {
  return {
    prefix, isWord, depth, parent: null, children: [], layer: 0, fate: DROPPED, votes: NaN, z: NaN,
    estimate: NaN, stdError: NaN, trueClients: -1, share: NaN, width: 0, fakeVotes: NaN, byFakes: false, posterior: NaN, validation: null, rejected: 0, runs: 0,
  };
}

/**
 * @param {Map<string, TrieNode>} nodes
 * @param {Round} round
 * @param {boolean} makes Whether what is not there yet is put there.
 */
function add(nodes, { chunk, layer, run = 1 }, makes) {
  const { said } = chunk;
  const place = new Map(said.votes.map((votes, i) => [votes, i]));
  for (let i = 0; i < chunk.prefix.length; i += 1) {
    const prefix = chunk.prefix[i], isWord = Boolean(chunk.is_word[i]);
    if (!prefix) continue;
    const key = keyOf(prefix, isWord);
    let node = nodes.get(key);
    const at = /** @type {number} */ (place.get(chunk.votes[i]));
    const estimate = real(said.estimate[at]);
    const share = Math.max(estimate, 0) / layer.num_clients;
    if (!node && !makes) continue;
    if (!node) {
      node = empty(prefix, isWord, symbolsOf(prefix).length + Number(isWord));
      nodes.set(key, node);
    }
    const survived = chunk.fate[i] !== DROPPED;
    if (isValidation(layer)) {
      node.validation = { returned: survived, votes: chunk.votes[i], z: real(said.z[at]), estimate, stdError: real(said.std_error[at]), share, fakeVotes: chunk.fake_votes?.[i] ?? NaN };
      // A word keeps its place in the trie.
      if (node.layer) continue;
    }
    if (survived) node.runs |= run;
    // Of two runs that are laid over each other, the first that kept it says how much it has.
    if (node.layer && (node.fate !== DROPPED || !survived)) continue;
    node.layer = layer.layer;
    node.fate = Math.max(node.fate, chunk.fate[i]);
    node.votes = chunk.votes[i];
    node.z = real(said.z[at]);
    node.estimate = estimate;
    node.stdError = real(said.std_error[at]);
    node.trueClients = chunk.true_clients[i];
    node.share = share;
    node.fakeVotes = chunk.fake_votes?.[i] ?? NaN;
    node.byFakes = Boolean(chunk.by_fakes?.[i]);
    node.posterior = real(chunk.posterior?.[i] ?? null);
  }
}

/**
 * Note which candidates a validation round did not return: whatever survived it is recorded.
 * @param {Map<string, TrieNode>} nodes
 * @param {Round} round
 */
function reject(nodes, { chunk, layer, run = 1 }) {
  const returned = new Set(chunk.prefix.filter((_, i) => chunk.fate[i] !== DROPPED));
  for (const node of nodes.values()) {
    if (!node.isWord || node.fate !== WORD || !(node.runs & run) || returned.has(node.prefix)) continue;
    node.runs &= ~run;
    // The other of two runs may have returned it.
    if (!node.runs) node.rejected = layer.layer;
  }
}

/**
 * Return the least posterior probability of what each layer kept, of prefixes and of words.
 * @param {Round[]} rounds
 */
function leastPosteriors(rounds) {
  /** @type {Map<string, number>} */
  const least = new Map();
  for (const { chunk, layer } of rounds) {
    if (!byPosterior(layer)) continue;
    chunk.posterior?.forEach((posterior, i) => {
      const key = `${layer.layer} ${Boolean(chunk.is_word[i])}`;
      if (posterior === null || chunk.fate[i] === DROPPED) return;
      least.set(key, Math.min(posterior, least.get(key) ?? Infinity));
    });
  }
  return least;
}

/**
 * Hang a node below its parent, which is made if no round asked about it.
 * @param {Map<string, TrieNode>} nodes
 * @param {TrieNode} node
 */
function link(nodes, node) {
  while (node.prefix && !node.parent) {
    const prefix = node.isWord ? node.prefix : symbolsOf(node.prefix).slice(0, -1).join("");
    let parent = nodes.get(keyOf(prefix, false));
    if (!parent) {
      parent = empty(prefix, false, node.depth - 1);
      parent.fate = KEPT;
      nodes.set(keyOf(prefix, false), parent);
    }
    node.parent = parent;
    parent.children.push(node);
    node = parent;
  }
}

/** @param {TrieNode} node */
export function isReal(node) {
  return node.trueClients > 0;
}

/**
 * Whether a node takes a place in the picture: what survived does, and what was lost.
 * @param {TrieNode} node
 */
function hasPlace(node) {
  return node.fate !== DROPPED || node.layer === 0 || isReal(node);
}

/**
 * Give each node its width: its share of its parent's, by estimated mass. Where children are
 * estimated to have more than their parent, they share what it has.
 * @param {TrieNode} root
 */
function measure(root) {
  /** @type {TrieNode[]} */
  const order = [root];
  for (let i = 0; i < order.length; i += 1) order.push(...order[i].children);
  for (const node of order.reverse()) {
    // A prefix was kept wherever something that begins with it was: also where nobody was asked.
    for (const child of node.children) node.runs |= child.runs;
    node.children = node.children.filter(hasPlace);
    const sum = node.children.reduce((total, child) => total + child.share, 0);
    if (!(node.share >= 0)) {
      node.share = sum;
      // Nobody asked about it: it is as real as what is known to come after it.
      node.trueClients = node.children.reduce((most, child) => Math.max(most, child.trueClients), -1);
    }
  }
  for (const node of order.reverse()) {
    const sum = node.children.reduce((total, child) => total + child.share, 0);
    const whole = Math.max(sum, node.share);
    for (const child of node.children) {
      child.width = whole > 0 ? (node.width * child.share) / whole : 0;
    }
    node.children.sort((a, b) => b.width - a.width || (a.prefix < b.prefix ? -1 : 1));
  }
}
