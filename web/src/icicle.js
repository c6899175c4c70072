// The trie as an icicle: each row is one more symbol, each width an estimated mass.

import { hierarchy, partition } from "d3-hierarchy";
import { color, onScheme } from "./colors.js";
import { el, fill, bdi } from "./dom.js";
import { detailsOf } from "./icicle_details.js";
import { legendOf } from "./icicle_legend.js";
import { ROW, drawLabel, labelsOf, svgLabel } from "./icicle_labels.js";
import { saveCanvas, saveText } from "./save.js";
import { shown, symbolsOf } from "./text.js";
import { DROPPED, isReal } from "./trie.js";

/** @typedef {import("./trie.js").Trie} Trie */
/** @typedef {import("./trie.js").TrieNode} TrieNode */
/** @typedef {{node: TrieNode, x: number, y: number, width: number}} Box */

/**
 * What is too narrow to be drawn by itself, in parallel below one prefix.
 * @typedef {object} Rest
 * @property {number} x
 * @property {number} y
 * @property {number} width
 * @property {Record<string, number>} kinds Width of each kind.
 * @property {number} layer The first of its layers.
 */

const THINNEST = 0.35;
const FONT = "12px system-ui, sans-serif";

/** What a node's color says. */
const RUN_KINDS = ["neither", "only-a", "only-b", "both"];

/** @param {TrieNode} node @param {boolean} overlaid */
export function kindOf(node, overlaid) {
  if (overlaid) return RUN_KINDS[node.runs];
  if (node.trueClients < 0) return "undecided";
  if (node.byFakes) return "fake";
  return isReal(node) ? "real" : "noise";
}

export class Icicle {
  /**
   * @param {object} options
   * @param {string} options.name Of saved pictures.
   * @param {number} options.depth Symbols of the longest word: the picture's height never changes.
   * @param {string[] | null} options.overlaid Names of the two runs that are laid over each other.
   * @param {boolean} options.validates Whether a validation round decides which words are discovered.
   * @param {boolean} [options.isLive] Whether truth may be unknown yet.
   * @param {boolean} [options.hasFakes] Whether some clients are fake.
   */
  constructor({ name, depth, overlaid, validates, isLive = false, hasFakes = false }) {
    this.name = name;
    this.isLive = isLive;
    this.overlaid = overlaid;
    this.validates = validates;
    /** Rounds of the trie's pass. @type {import("./rounds.js").Layer[]} */
    this.layers = [];
    /** @type {Trie | null} */
    this.trie = null;
    /** @type {TrieNode | null} */
    this.focus = null;
    /** @type {TrieNode | null} */
    this.selected = null;
    /** Path of the word that is searched for. @type {Set<TrieNode>} */
    this.path = new Set();
    this.layer = Infinity;
    /** @type {Box[]} */
    this.boxes = [];
    /** @type {Rest[]} */
    this.rests = [];
    this.frame = 0;
    this.canvas = el("canvas", {
      class: "icicle",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "trie",
      "aria-label":
        "Trie of prefixes. Arrow keys move: right and left to neighbors, down to a longer prefix, up to a shorter one. Enter zooms in, Escape out.",
    });
    // One row for all prefixes, one for each symbol, one for the end of the longest word.
    this.canvas.style.height = `${(depth + 2) * ROW}px`;
    this.crumbs = el("nav", { class: "crumbs", "aria-label": "Prefix that the picture begins with" });
    this.details = el("div", { class: "details", role: "status", "aria-live": "polite" });
    this.legend = el("p", { class: "legend" }, legendOf(overlaid, isLive, hasFakes));
    this.element = el(
      "figure",
      { class: "trie" },
      this.legend,
      this.crumbs,
      el("div", { class: "frame" }, this.canvas),
      this.details,
      el(
        "div",
        { class: "buttons" },
        el("button", { type: "button", onclick: () => this.zoom(this.trie?.root ?? null) }, "Whole trie"),
        el("button", { type: "button", onclick: () => saveText(`${name}.svg`, this.svg(), "image/svg+xml") }, "Save SVG"),
        el("button", { type: "button", onclick: () => saveCanvas(name, this.canvas) }, "Save PNG"),
      ),
    );
    this.canvas.addEventListener("mousemove", (event) => this.select(this.at(event)));
    this.canvas.addEventListener("click", (event) => this.zoom(this.at(event)));
    this.canvas.addEventListener("keydown", (event) => this.press(event));
    new ResizeObserver(() => this.layout()).observe(this.canvas);
    onScheme(() => this.draw());
  }

  /** @param {Trie} trie */
  show(trie) {
    const before = this.focus?.prefix ?? "";
    this.trie = trie;
    this.focus = trie.get(before, false) ?? trie.root;
    this.path = new Set();
    this.select(null);
    this.zoom(this.focus);
  }

  /** Show the trie as it was after a layer. @param {number} layer */
  reveal(layer) {
    this.layer = layer;
    this.draw();
  }

  /** Mark a word's path. @param {TrieNode[]} nodes */
  mark(nodes) {
    this.path = new Set(nodes);
    this.draw();
  }

  /** @param {TrieNode | null} node */
  zoom(node) {
    if (!node || !this.trie) return;
    this.focus = node.children.length || !node.parent ? node : node.parent;
    this.layout();
    const steps = [];
    /** @type {TrieNode | null} */
    let each = this.focus;
    while (each) {
      const target = each;
      steps.unshift(
        el(
          "button",
          { type: "button", class: "crumb", onclick: () => this.zoom(target) },
          target.prefix ? bdi(shown(symbolsOf(target.prefix).at(-1) ?? "")) : "all prefixes",
        ),
      );
      each = each.parent;
    }
    fill(this.crumbs, ...steps);
  }

  layout() {
    const { clientWidth, clientHeight } = this.canvas;
    if (!this.focus || !clientWidth) return;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = clientWidth * ratio;
    this.canvas.height = clientHeight * ratio;
    const least = (THINNEST / clientWidth) * this.focus.width;
    /** @param {TrieNode} node */
    const wide = (node) => node.children.filter((child) => child.width > least);
    /** @param {TrieNode} node */
    const own = (node) => Math.max(node.width - wide(node).reduce((sum, child) => sum + child.width, 0), 0);
    const tree = hierarchy(this.focus, wide).sum(own);
    const height = (tree.height + 1) * ROW;
    const above = this.focus.depth * ROW;
    const placed = partition().size([clientWidth, height])(/** @type {any} */ (tree));
    this.boxes = placed.descendants().map((each) => ({
      node: /** @type {TrieNode} */ (each.data),
      x: each.x0,
      y: above + each.depth * ROW,
      width: each.x1 - each.x0,
    }));
    const scale = clientWidth / this.focus.width;
    this.rests = placed.descendants().flatMap((each) => this.restOf(each, least, scale, above));
    // The prefixes above the picture's first stay in sight, as wide as the picture.
    for (let node = this.focus.parent; node; node = node.parent) {
      this.boxes.push({ node, x: 0, y: node.depth * ROW, width: clientWidth });
    }
    this.draw();
  }

  /**
   * @param {any} placed
   * @param {number} least
   * @param {number} scale
   * @param {number} above
   * @returns {Rest[]}
   */
  restOf(placed, least, scale, above) {
    const node = /** @type {TrieNode} */ (placed.data);
    const hidden = node.children.filter((child) => child.width <= least);
    /** @type {Record<string, number>} */
    const kinds = {};
    let width = 0, layer = Infinity;
    for (const child of hidden) {
      const kind = kindOf(child, Boolean(this.overlaid));
      kinds[kind] = (kinds[kind] ?? 0) + child.width * scale;
      width += child.width * scale;
      layer = Math.min(layer, child.layer);
    }
    if (width < 0.5) return [];
    const taken = (placed.children ?? []).reduce((/** @type {number} */ sum, /** @type {any} */ child) => sum + child.x1 - child.x0, 0);
    return [{ x: placed.x0 + taken, y: above + (placed.depth + 1) * ROW, width, kinds, layer }];
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.paint());
  }

  /** Whether a node is there after the chosen layer. @param {TrieNode} node */
  isShown(node) {
    return node.layer <= this.layer;
  }

  /** Whether a node was dropped, or not returned by the validation round that is chosen. @param {TrieNode} node */
  isLost(node) {
    return node.fate === DROPPED || (node.rejected > 0 && node.rejected <= this.layer);
  }

  paint() {
    const pen = this.canvas.getContext("2d");
    if (!pen) return;
    const ratio = window.devicePixelRatio || 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, this.canvas.clientWidth, this.canvas.clientHeight);
    pen.font = FONT;
    pen.textBaseline = "middle";
    const fills = this.fills();
    for (const { node, x, y, width } of this.boxes) {
      if (!this.isShown(node)) continue;
      const lost = this.isLost(node);
      pen.globalAlpha = lost ? 0.32 : node.layer === this.layer || node.layer === 0 ? 1 : 0.82;
      pen.fillStyle = node.parent ? fills[kindOf(node, Boolean(this.overlaid))] : color("faint");
      const gap = width > 3 ? 1 : 0;
      pen.fillRect(x, y, width - gap, ROW - 2);
      pen.globalAlpha = 1;
      if (lost && width > 3) cross(pen, x, y, width - gap);
    }
    pen.globalAlpha = 0.5;
    for (const { x, y, width, kinds, layer } of this.rests) {
      if (layer > this.layer) continue;
      let top = y;
      for (const [kind, part] of Object.entries(kinds)) {
        const height = ((ROW - 2) * part) / width;
        pen.fillStyle = fills[kind];
        pen.fillRect(x, top, width, height);
        top += height;
      }
    }
    pen.globalAlpha = 1;
    for (const [label, ink] of this.labels((text) => pen.measureText(text).width)) drawLabel(pen, label, ink);
    this.outline(pen, this.path, color("mark"), 2);
    if (this.selected) this.outline(pen, new Set([this.selected]), color("ink"), 2);
  }

  /**
   * Return the labels of what is shown, each with the color of one inside its block.
   * @param {(text: string) => number} measure
   * @returns {[import("./icicle_labels.js").Label, string][]}
   */
  labels(measure) {
    const [ink, ground] = [color("ink"), color("ground")];
    /** @param {Box} box */
    const isDark = ({ node }) => this.isLost(node) || !node.parent;
    const seen = this.boxes.filter(({ node }) => this.isShown(node));
    return labelsOf(seen, this.canvas.clientWidth, measure).map((label) => {
      const box = label.plate ? null : seen.find(({ x, y }) => y === label.y && x === label.from);
      return [label, box && isDark(box) ? ink : ground];
    });
  }

  /** @param {CanvasRenderingContext2D} pen @param {Set<TrieNode>} nodes @param {string} stroke @param {number} wide */
  outline(pen, nodes, stroke, wide) {
    if (!nodes.size) return;
    pen.strokeStyle = stroke;
    pen.lineWidth = wide;
    for (const { node, x, y, width } of this.boxes) {
      if (nodes.has(node)) pen.strokeRect(x + 1, y + 1, Math.max(width - 2, 1), ROW - 4);
    }
  }

  /** @returns {Record<string, string>} */
  fills() {
    const kinds = ["real", "noise", "fake", "undecided", ...RUN_KINDS];
    return Object.fromEntries(kinds.map((kind) => [kind, color(kind)]));
  }

  /** @param {MouseEvent} event */
  at(event) {
    const { left, top } = this.canvas.getBoundingClientRect();
    const x = event.clientX - left, y = event.clientY - top;
    const box = this.boxes.find(
      (each) => this.isShown(each.node) && y >= each.y && y < each.y + ROW && x >= each.x && x < each.x + each.width,
    );
    return box?.node ?? null;
  }

  /** @param {TrieNode | null} node */
  select(node) {
    if (node === this.selected && node) return;
    this.selected = node;
    fill(this.details, ...detailsOf(node, this));
    this.draw();
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const node = this.selected ?? this.focus;
    if (!node) return;
    const visible = /** @param {TrieNode[]} nodes */ (nodes) =>
      nodes.filter((each) => this.isShown(each) && this.boxes.some((box) => box.node === each));
    const row = node.parent ? visible(node.parent.children) : [];
    const place = row.indexOf(node);
    /** @type {Record<string, () => void>} */
    const moves = {
      ArrowRight: () => this.select(row[place + 1] ?? node),
      ArrowLeft: () => this.select(row[place - 1] ?? node),
      ArrowDown: () => this.select(visible(node.children)[0] ?? node),
      ArrowUp: () => node.parent && this.select(node.parent),
      Enter: () => this.zoom(node),
      Escape: () => this.zoom(this.focus?.parent ?? this.focus),
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    move();
  }

  /** Return the picture as SVG. */
  svg() {
    const { clientWidth, clientHeight } = this.canvas;
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg");
    svg.setAttribute("width", `${clientWidth}`);
    svg.setAttribute("height", `${clientHeight}`);
    svg.setAttribute("font-family", "system-ui, sans-serif");
    svg.setAttribute("font-size", "12");
    const fills = this.fills();
    for (const { node, x, y, width } of this.boxes) {
      if (!this.isShown(node)) continue;
      const box = document.createElementNS(space, "rect");
      const lost = this.isLost(node);
      const values = {
        x, y, width: Math.max(width - (width > 3 ? 1 : 0), 0.1), height: ROW - 2,
        fill: node.parent ? fills[kindOf(node, Boolean(this.overlaid))] : color("faint"),
        "fill-opacity": lost ? 0.32 : 1,
      };
      for (const [name, value] of Object.entries(values)) box.setAttribute(name, `${value}`);
      svg.append(box);
    }
    const pen = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    for (const [label, ink] of this.labels((text) => pen.measureText(text).width)) svg.append(...svgLabel(label, ink));
    return new XMLSerializer().serializeToString(svg);
  }
}

/** @param {CanvasRenderingContext2D} pen @param {number} x @param {number} y @param {number} width */
function cross(pen, x, y, width) {
  pen.strokeStyle = color("ink");
  pen.globalAlpha = 0.35;
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(x, y + ROW - 2);
  pen.lineTo(x + width, y);
  pen.stroke();
  pen.globalAlpha = 1;
}
