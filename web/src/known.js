// Words that devices know and keep to themselves.

import { chunk } from "./data.js";

/** @typedef {import("./types.js").Run} Run */

const ENDS_AS_ORDINAL = /^[0-9]+(st|nd|rd|th)$/;

/** @type {Map<string, Promise<Set<string>>>} */
const lists = new Map();

/**
 * Return whether devices know a word, by the rule that takes known words out of what they hold;
 * false where the page does not have the list.
 * @param {Run} run
 * @param {string} word
 */
export async function isKnown(run, word) {
  const name = run.known?.chunk;
  if (!name) return false;
  let list = lists.get(name);
  if (!list) {
    list = chunk(name).then(unfolded);
    lists.set(name, list);
  }
  const words = await list, lower = word.toLowerCase();
  return words.has(lower) || words.has(lower.replace(/'s$/, "")) || ENDS_AS_ORDINAL.test(lower);
}

/**
 * Return the words of a list in which a capital letter begins each, and says how many of the last
 * word's first symbols it has.
 * @param {string} text
 */
function unfolded(text) {
  const words = new Set();
  let before = "";
  for (const piece of text.match(/[A-Z][^A-Z]*/g) ?? []) {
    before = before.slice(0, piece.charCodeAt(0) - 65) + piece.slice(1);
    words.add(before);
  }
  return words;
}
