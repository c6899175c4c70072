// Candidates of a round, counted by something: what its charts by votes and by posterior share.

import * as Plot from "@observablehq/plot";
import { color } from "./colors.js";
import { number } from "./text.js";

/** @typedef {{ from: number, to: number, count: number, kind: { label: string, color: string, opacity: number } }} Bar */

/**
 * @template {Bar} B
 * @param {{
 *   width: number, label: string, x: Plot.ScaleOptions, bars: B[],
 *   title: (bar: B) => string, marks: Plot.Markish[],
 * }} chart
 * @returns {Element}
 */
export function histogram({ width, label, x, bars, title, marks }) {
  return Plot.plot({
    width,
    height: 260,
    marginLeft: 56,
    marginBottom: 44,
    marginTop: 34,
    ariaLabel: label,
    style: { background: "transparent", fontSize: "12px", overflow: "visible" },
    x,
    y: { label: "\u2191 candidates (square root)", type: "sqrt", grid: true, ticks: 5, tickFormat: (/** @type {number} */ count) => number(count) },
    marks: [
      Plot.rectY(bars, {
        x1: "from",
        x2: "to",
        y: "count",
        fill: (/** @type {B} */ bar) => color(bar.kind.color),
        fillOpacity: (/** @type {B} */ bar) => bar.kind.opacity,
        insetRight: 0.5,
        tip: true,
        title,
      }),
      ...marks,
    ],
  });
}
