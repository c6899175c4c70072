// The trie of a run's pass: which candidates there were, and how much mass each has.

/** @typedef {import("./types.js").RoundChunk} RoundChunk */
/** @typedef {import("./types.js").Run} Run */
/** @typedef {import("./types.js").Columns} Columns */

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
 * @property {number} rejected Layer of the recount that took the word back; 0 for none.
 * @property {number} runs Which of the overlaid runs kept it: 1, 2, or 3 for both.
 */

/**
 * @typedef {object} Layer A round's row of the layers' table, as far as the page reads it.
 * @property {number} pass
 * @property {number} layer
 * @property {number} threshold
 * @property {number | null} threshold_z Null where votes do not decide.
 * @property {number} noise_std
 * @property {number} num_clients
 * @property {number} num_reports
 * @property {number} num_candidates
 * @property {number} num_kept
 * @property {number} num_finished
 * @property {string} kept_by
 * @property {number | null} coverage
 * @property {number | null} missed_mass
 * @property {boolean | number} decides
 */

/**
 * Return the rows of a table, as objects.
 * @param {Columns} columns
 * @returns {any[]}
 */
export function rowsOf(columns) {
  const names = Object.keys(columns);
  const length = names.length ? columns[names[0]].length : 0;
  return Array.from({ length }, (_, i) =>
    Object.fromEntries(names.map((name) => [name, columns[name][i]])),
  );
}

/**
 * Return a run's rounds, in order.
 * @param {Run} run
 * @returns {Layer[]}
 */
export function layersOf(run) {
  return rowsOf(run.layers);
}

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

export class Trie {
  /** @param {Map<string, TrieNode>} nodes @param {TrieNode} root */
  constructor(nodes, root) {
    this.nodes = nodes;
    this.root = root;
    this.depth = 0;
    for (const node of nodes.values()) this.depth = Math.max(this.depth, node.depth);
  }

  /**
   * Return the trie of some rounds.
   * @param {{chunk: RoundChunk, layer: Layer, run?: number}[]} rounds
   */
  static of(rounds) {
    const root = empty("", false, 0);
    root.fate = KEPT;
    root.width = 1;
    /** @type {Map<string, TrieNode>} */
    const nodes = new Map([["p", root]]);
    for (const { chunk, layer, run = 1 } of rounds) add(nodes, chunk, layer, run);
    for (const node of [...nodes.values()]) link(nodes, node);
    measure(root);
    return new Trie(nodes, root);
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
    estimate: NaN, stdError: NaN, trueClients: -1, share: NaN, width: 0, rejected: 0, runs: 0,
  };
}

/**
 * @param {Map<string, TrieNode>} nodes
 * @param {RoundChunk} chunk
 * @param {Layer} layer
 * @param {number} run
 */
function add(nodes, chunk, layer, run) {
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
    if (!node) {
      node = empty(prefix, isWord, [...prefix].length + Number(isWord));
      nodes.set(key, node);
    }
    const survived = chunk.fate[i] !== DROPPED;
    if (isRecount(layer)) {
      // A word keeps its place in the trie; the recount says whether it is returned.
      if (!survived) {
        node.rejected = layer.layer;
        node.runs &= ~run;
      }
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
  }
}

/**
 * Hang a node below its parent, which is made if no round asked about it.
 * @param {Map<string, TrieNode>} nodes
 * @param {TrieNode} node
 */
function link(nodes, node) {
  while (node.prefix && !node.parent) {
    const prefix = node.isWord ? node.prefix : [...node.prefix].slice(0, -1).join("");
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

/** @param {Layer} layer */
export function isRecount(layer) {
  return layer.kept_by === "recount" || layer.kept_by === "evidence";
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
