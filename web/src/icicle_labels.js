// What stands in the trie's blocks: labels inside, and next to those that are too narrow for one.

import { color } from "./colors.js";
import { shown, symbolsOf } from "./text.js";

/** @typedef {import("./trie.js").TrieNode} TrieNode */
/** @typedef {{node: TrieNode, x: number, y: number, width: number}} Box */
/** @typedef {{text: string, x: number, y: number, plate: number, from: number}} Label */

export const ROW = 30;
const NARROWEST = 1.5;
const PAD = 3;

/** @param {TrieNode} node */
function prefixOf(node) {
  if (!node.parent) return "all prefixes";
  return shown(node.prefix) + (node.isWord ? " \u25a0" : "");
}

/** @param {TrieNode} node */
function symbolOf(node) {
  if (!node.parent) return "all prefixes";
  return node.isWord ? "\u25a0" : shown(symbolsOf(node.prefix).at(-1) ?? "");
}

/**
 * Return what labels a picture's blocks. A block with room has its own. Of the others the widest
 * come first: theirs lies on a plate over its neighbors, with a line to the block, as long as no
 * label of the same row is in the way.
 * @param {Box[]} boxes
 * @param {number} width Of the picture.
 * @param {(text: string) => number} measure
 * @returns {Label[]}
 */
export function labelsOf(boxes, width, measure) {
  /** @type {Map<number, [number, number][]>} */
  const taken = new Map();
  /** @type {Label[]} */
  const labels = [];
  /** @param {number} y @param {number} from @param {number} to */
  const take = (y, from, to) => {
    const row = taken.get(y) ?? [];
    taken.set(y, row);
    if (row.some(([start, end]) => from < end + 2 && to > start - 2)) return false;
    row.push([from, to]);
    return true;
  };
  const narrow = [];
  for (const box of boxes) {
    const { node, x, y, width: wide } = box;
    const whole = prefixOf(node);
    const text = measure(whole) < wide - 8 ? whole : symbolOf(node);
    if (wide <= 16 || (text !== whole && node.depth > 1)) narrow.push(box);
    else if (measure(text) <= wide - 5 && take(y, x, x + measure(text) + 8)) labels.push({ text, x: x + 4, y, plate: 0, from: x });
  }
  narrow.sort((a, b) => b.width - a.width);
  for (const { node, x, y, width: wide } of narrow) {
    if (wide < NARROWEST) break;
    const text = prefixOf(node);
    const plate = measure(text) + 2 * PAD;
    if (plate > width) continue;
    const left = Math.min(Math.max(x + wide / 2 - plate / 2, 0), width - plate);
    if (take(y, left, left + plate)) labels.push({ text, x: left + PAD, y, plate, from: x + wide / 2 });
  }
  return labels;
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {Label} label
 * @param {string} ink Of a label inside its block.
 */
export function drawLabel(pen, { text, x, y, plate, from }, ink) {
  if (!plate) {
    pen.fillStyle = ink;
    pen.fillText(text, x, y + ROW / 2 - 1);
    return;
  }
  pen.fillStyle = color("ground");
  pen.globalAlpha = 0.9;
  pen.fillRect(x - PAD, y + 11, plate, ROW - 14);
  pen.globalAlpha = 1;
  pen.fillStyle = color("ink");
  pen.fillRect(from - 0.5, y + 5, 1, 6);
  pen.fillText(text, x, y + 19);
}

/**
 * Return a label for SVG.
 * @param {Label} label
 * @param {string} ink
 */
export function svgLabel({ text, x, y, plate, from }, ink) {
  const space = "http://www.w3.org/2000/svg";
  /** @param {string} name @param {Record<string, string | number>} values */
  const made = (name, values) => {
    const shape = document.createElementNS(space, name);
    for (const [key, value] of Object.entries(values)) shape.setAttribute(key, `${value}`);
    return shape;
  };
  const words = made("text", { x, y: plate ? y + 23 : y + ROW / 2 + 3, fill: plate ? color("ink") : ink });
  words.textContent = text;
  if (!plate) return [words];
  return [
    made("rect", { x: x - PAD, y: y + 11, width: plate, height: ROW - 14, fill: color("ground"), "fill-opacity": 0.9 }),
    made("rect", { x: from - 0.5, y: y + 5, width: 1, height: 6, fill: color("ink") }),
    words,
  ];
}
