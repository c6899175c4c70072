// A sweep, a comparison or a table: any metric over any axis, with intervals, and a map of two axes.

import * as Plot from "@observablehq/plot";
import { colorsOf, onScheme } from "./colors.js";
import { choice, el, fill, onResize, section } from "./dom.js";
import { saveButtons } from "./save.js";
import { configuration, textTable } from "./tables.js";
import { formOf, number, shown } from "./text.js";
import { rowsOf } from "./data.js";

/** @typedef {import("./types.js").SweepManifest} SweepManifest */

/**
 * @typedef {object} Point A setting's mean over seeds.
 * @property {any} x
 * @property {string} color
 * @property {string} facet
 * @property {string} line Points of one line.
 * @property {number} mean
 * @property {number | null} low
 * @property {number | null} high
 * @property {any[]} rows
 * @property {string} title
 */

/** 97.5% points of Student's t, by degrees of freedom from 1. */
const T = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042];

/**
 * Return a mean over seeds with its interval, by the rule of the package's own tables: Student's
 * 95% interval from three seeds on, the two values of two, none of one; a share's is cut.
 * @param {number[]} values
 * @param {boolean} share
 */
export function interval(values, share) {
  const n = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / n;
  if (n < 2) return { mean, low: null, high: null };
  if (n === 2) return { mean, low: Math.min(...values), high: Math.max(...values) };
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1);
  const half = (T[n - 2] ?? 1.96 + 2.4 / (n - 1)) * Math.sqrt(variance / n);
  const cut = /** @param {number} value */ (value) => (share ? Math.min(Math.max(value, 0), 1) : value);
  return { mean, low: cut(mean - half), high: cut(mean + half) };
}

const LOCAL = "privacy.local_epsilon";

const READ = "Each point is a mean over seeds, with Student's 95% interval from three seeds on, and the two values of two. Point at one for its numbers; click it, or choose it with Tab and Enter, for its runs.";

export class SweepView {
  /** @param {SweepManifest} page */
  constructor(page) {
    this.page = page;
    this.chosen = { kind: "lines", x: "", metric: "", color: "", facet: "" };
    /** Whether the reader chose something, which what is new must not undo. */
    this.isChosen = false;
    this.controls = el("div", { class: "controls" });
    this.picture = el("div", { class: "plot" });
    this.details = el("div", { class: "details", role: "status", "aria-live": "polite" }, el("span", { class: "hint" }, `Click a point, or choose one with Tab and Enter, for ${page.lead ? "all of its numbers" : "its settings and runs"}.`));
    this.tables = el("div", {});
    this.lead = el("p", { class: "facts-line" });
    this.element = el(
      "div",
      { class: "sweep" },
      this.lead,
      section(
        page.lead ? page.title : "Results",
        page.lead ?? READ,
        this.controls,
        this.picture,
        this.details,
        saveButtons((how) => this.save(how)),
      ),
      this.tables,
      configuration("", page.config),
    );
    this.refresh();
    onScheme(() => this.draw());
    onResize(this.picture, () => this.draw());
  }

  /** Take what is new. */
  refresh() {
    const { page } = this;
    /** @type {any[]} */
    this.rows = rowsOf(page.rows);
    const axes = page.axes.map((axis) => axis.path);
    /** @param {string} path */
    const isNumber = (path) => /** @type {any[]} */ (this.rows).every((row) => typeof row[path] === "number" || row[path] === null);
    this.numeric = axes.filter(isNumber);
    if (!this.isChosen) {
      const metrics = page.metrics.map((metric) => metric.path);
      const { x = axes[0] ?? "seed", color = "", facet = "" } = page.layout;
      const metric = metrics.includes(page.best) ? page.best : (metrics[0] ?? "");
      this.chosen = { ...this.chosen, x, color, facet, metric };
    }
    this.lead.hidden = Boolean(page.lead);
    const counts = [`${number(this.rows.length)} runs`, page.failed ? `${number(page.failed)} failed` : ""];
    const sentences = [counts.filter(Boolean).join(", "), page.clients].filter(Boolean);
    this.lead.textContent = sentences.map((sentence) => `${sentence.replace(/\.$/, "")}.`).join(" ");
    fill(this.tables, ...page.tables.map((table) => section(table.title, null, textTable(table))));
    this.choose();
    this.draw();
  }

  choose() {
    const { page, chosen } = this;
    const axes = page.axes.map((axis) => ({ value: axis.path, label: axis.label }));
    const central = page.metrics.filter((metric) => metric.path.startsWith("central_epsilon")).map((metric) => ({ value: metric.path, label: metric.label }));
    const none = { value: "", label: "nothing" };
    /** @param {"kind" | "x" | "metric" | "color" | "facet"} key */
    const set = (key) => (/** @type {string} */ value) => {
      chosen[key] = value;
      this.isChosen = true;
      this.choose();
      this.draw();
    };
    fill(
      this.controls,
      choice("Picture", [{ value: "lines", label: "lines" }, { value: "map", label: "heat map" }], chosen.kind, set("kind"), "picture"),
      choice(chosen.kind === "map" ? "Color" : "y", page.metrics.map((metric) => ({ value: metric.path, label: metric.label })), chosen.metric, set("metric"), "metric"),
      choice("x", [...(axes.length ? axes : [{ value: "seed", label: "seed" }]), ...central], chosen.x, set("x"), "x"),
      choice(chosen.kind === "map" ? "y" : "Color", [none, ...axes], chosen.color, set("color"), "color"),
      choice("Panels", [none, ...axes], chosen.facet, set("facet"), "panels"),
      central.length && page.metrics.some((metric) => metric.path === "coverage")
        ? el("button", { type: "button", onclick: () => this.tradeOff(central[0].value) }, "Coverage over central epsilon")
        : null,
    );
  }

  /** Show what a central epsilon buys; as a choice, so that the page's address has it. @param {string} central */
  tradeOff(central) {
    for (const [name, value] of [["picture", "lines"], ["metric", "coverage"], ["x", central]]) {
      const select = /** @type {HTMLSelectElement} */ (this.controls.querySelector(`[data-name="${name}"]`));
      select.value = value;
      select.dispatchEvent(new Event("change"));
    }
  }

  /** Whether a setting's place on x is measured, a mean over its seeds. */
  get isMeasured() {
    return this.page.metrics.some((metric) => metric.path === this.chosen.x);
  }

  /** @returns {Point[]} */
  points() {
    const { x, metric, color: by, facet } = this.chosen;
    const measured = this.isMeasured;
    const axes = this.page.axes.map((axis) => axis.path);
    const measure = this.page.metrics.find((each) => each.path === metric);
    const share = measure?.share ?? false;
    const keys = [...new Set((measured ? [by, facet, ...axes] : [x, by, facet]).filter(Boolean))];
    /** @type {Map<string, any[]>} */
    const groups = new Map();
    for (const row of this.rows ?? []) {
      if (typeof row[metric] !== "number" || (measured && typeof row[x] !== "number")) continue;
      const key = JSON.stringify(keys.map((path) => row[path]));
      groups.set(key, [...(groups.get(key) ?? []), row]);
    }
    const form = formOf(measure);
    return [...groups.values()].map((rows) => {
      const said = interval(rows.map((row) => row[metric]), share);
      const [row] = rows;
      const between = said.low === null ? "" : ` [${form(said.low)}, ${form(said.high)}]`;
      const mixed = this.mixed(rows, keys);
      const lines = keys.map((path) => `${this.label(path)} ${valueText(row[path])}`);
      const place = measured ? interval(rows.map((each) => each[x]), false).mean : row[x];
      if (measured) lines.push(`${this.label(x)} ${formOf(this.page.metrics.find((each) => each.path === x))(place)}`);
      const runs = this.page.lead && rows.length === 1 ? [] : [`${number(rows.length)} ${this.page.lead ? "rows" : "runs"}${mixed ? `, a mean also over ${mixed}` : ""}`];
      return {
        x: place === null ? "none" : place,
        // Along other settings central epsilon hardly moves, and a line would only zigzag.
        line: JSON.stringify(measured ? keys.filter((path) => path !== LOCAL).map((path) => row[path]) : row[by]),
        color: by ? valueText(row[by]) : "all",
        facet: facet ? valueText(row[facet]) : "",
        ...said,
        rows,
        title: [...lines, `${this.metricLabel()} ${form(said.mean)}${between}`, ...runs].join("\n"),
      };
    });
  }

  /** Return the labels of settings that differ within a point, which its mean goes over. */
  /** @param {any[]} rows @param {string[]} keys */
  mixed(rows, keys) {
    const differing = this.page.axes.filter(
      (axis) => !keys.includes(axis.path) && new Set(rows.map((row) => row[axis.path])).size > 1,
    );
    return differing.map((axis) => axis.label).join(" and ");
  }

  /** @param {string} path */
  label(path) {
    return [...this.page.axes, ...this.page.metrics].find((each) => each.path === path)?.label ?? path;
  }

  metricLabel() {
    return this.page.metrics.find((each) => each.path === this.chosen.metric)?.label ?? this.chosen.metric;
  }

  draw() {
    if (!this.picture.clientWidth) return;
    const points = this.points();
    if (!points.length) {
      fill(this.picture, el("p", { class: "note" }, "No run has a number for this yet."));
      return;
    }
    const chart = this.chosen.kind === "map" ? this.map(points) : this.lines(points);
    fill(this.picture, chart);
    // Every point can be chosen with the mouse and with the keyboard.
    const marks = [...this.picture.querySelectorAll("[data-points] > *")];
    for (const mark of marks) {
      const index = /** @type {any} */ (mark).__data__;
      const point = this.drawn[index];
      if (!point) continue;
      mark.setAttribute("tabindex", "0");
      mark.setAttribute("role", "button");
      mark.setAttribute("aria-label", point.title.replaceAll("\n", ", "));
      mark.addEventListener("click", () => this.open(point));
      mark.addEventListener("keydown", (event) => {
        const { key } = /** @type {KeyboardEvent} */ (event);
        if (key === "Enter" || key === " ") {
          event.preventDefault();
          this.open(point);
        }
      });
    }
  }

  /** @type {Point[]} */
  drawn = [];

  /** @param {any[]} values */
  ordered(values) {
    const all = [...new Set(values)];
    return all.sort((a, b) => {
      const [x, y] = [Number(`${a}`.replaceAll(",", "")), Number(`${b}`.replaceAll(",", ""))];
      return Number.isFinite(x) && Number.isFinite(y) ? x - y : `${a}` < `${b}` ? -1 : 1;
    });
  }

  /** @param {Point[]} points */
  common(points) {
    const facets = this.ordered(points.map((point) => point.facet));
    const width = Math.max(this.picture.clientWidth || 640, 280);
    // Room for the longest label, at about 7 pixels a letter, and for the axis's own next to it, as
    // far as a narrow page has it.
    const letters = Math.max(...facets.map((facet) => `${facet}`.length), 0);
    const labels = Math.max(110, Math.min(60 + 7 * letters, 0.4 * width));
    return {
      width,
      height: this.chosen.facet ? 120 + 180 * facets.length : 360,
      marginLeft: 70,
      marginRight: this.chosen.facet ? labels : 24,
      marginBottom: 42,
      style: { background: "transparent", fontSize: "12px", overflow: "visible" },
      ariaLabel: `${this.metricLabel()} over ${this.label(this.chosen.x)}`,
      fy: { domain: facets, label: this.chosen.facet ? this.label(this.chosen.facet) : null },
    };
  }

  /** Return the color of each label. @param {string[]} labels */
  range(labels) {
    return colorsOf(labels, new Map(Object.entries(this.page.colors).map(([value, color]) => [valueText(value), color])));
  }

  /** @param {Point[]} points */
  lines(points) {
    const numeric = this.numeric?.includes(this.chosen.x) || this.chosen.x === "seed" || this.isMeasured;
    const metric = this.page.metrics.find((each) => each.path === this.chosen.metric);
    const colors = this.ordered(points.map((point) => point.color));
    const sorted = [...points].sort((a, b) => (numeric ? a.x - b.x : 0));
    this.drawn = sorted;
    const values = this.ordered(points.map((point) => point.x));
    const joined = this.isMeasured ? this.page.axes.some((axis) => axis.path === LOCAL) : numeric;
    const wide = numeric && values.length > 1 && values[0] > 0 && values[values.length - 1] / values[0] >= 20;
    const facet = this.chosen.facet ? { fy: "facet" } : {};
    return Plot.plot({
      ...this.common(points),
      x: numeric
        ? { label: `${this.label(this.chosen.x)} \u2192`, type: wide ? "log" : "linear", ticks: values.length <= 8 && !this.isMeasured ? values : wide ? logTicks(values[0], values[values.length - 1]) : 6, tickFormat: (/** @type {number} */ value) => valueText(value), inset: 12 }
        : { label: this.label(this.chosen.x), type: "point", domain: values, tickFormat: (/** @type {any} */ value) => valueText(value) },
      y: { label: `\u2191 ${this.metricLabel()}${metric?.share ? ", %" : ""}`, grid: true, percent: metric?.share, nice: true, zero: new Set(points.map((point) => point.mean)).size === 1 },
      color: { domain: colors, range: this.range(colors) },
      symbol: { domain: colors, legend: colors.length > 1 },
      marks: [
        Plot.ruleX(sorted.filter((point) => point.low !== null), { x: "x", y1: "low", y2: "high", stroke: "color", strokeWidth: 1.5, ...facet }),
        joined ? Plot.lineY(sorted, { x: "x", y: "mean", stroke: "color", z: "line", strokeWidth: 1.5, ...facet }) : null,
        marked(Plot.dot(sorted, { x: "x", y: "mean", stroke: "color", fill: "color", symbol: "color", r: 4, title: "title", tip: true, ...facet })),
      ],
    });
  }

  /** @param {Point[]} points */
  map(points) {
    const metric = this.page.metrics.find((each) => each.path === this.chosen.metric);
    const form = formOf(metric);
    this.drawn = points;
    const facet = this.chosen.facet ? { fy: "facet" } : {};
    const means = points.map((point) => point.mean);
    const [low, high] = [Math.min(...means), Math.max(...means)];
    return Plot.plot({
      ...this.common(points),
      height: this.chosen.facet ? undefined : Math.max(160, 60 + 48 * new Set(points.map((point) => point.color)).size),
      padding: 0.04,
      x: { label: `${this.label(this.chosen.x)} \u2192`, type: "band", domain: this.ordered(points.map((point) => point.x)), tickFormat: (/** @type {any} */ value) => valueText(value) },
      y: { label: this.chosen.color ? `\u2191 ${this.label(this.chosen.color)}` : null, type: "band", domain: this.ordered(points.map((point) => point.color)).reverse() },
      color: { scheme: "viridis", legend: true, label: this.metricLabel(), percent: metric?.share },
      marks: [
        marked(Plot.cell(points, { x: "x", y: "color", fill: "mean", title: "title", tip: true, ...facet })),
        Plot.text(points, {
          x: "x", y: "color", text: (/** @type {Point} */ point) => form(point.mean), pointerEvents: "none",
          fill: (/** @type {Point} */ point) => (point.mean > low + 0.6 * (high - low) ? "#111" : "#fff"), ...facet,
        }),
      ],
    });
  }

  /** @param {Point} point */
  open(point) {
    const { opens } = this.page;
    const cells = [...new Set(point.rows.map((row) => row.cell))];
    const settings = this.page.axes.map((axis) => {
      const values = [...new Set(point.rows.map((row) => valueText(row[axis.path])))];
      return `${axis.label} ${values.join(", ")}`;
    });
    const metric = this.page.metrics.find((each) => each.path === this.chosen.metric);
    const form = formOf(metric);
    if (this.page.lead) {
      const said = point.rows.map((row) => this.page.metrics.map((each) => `${each.label} ${formOf(each)(row[each.path])}`).join("; "));
      fill(this.details, el("p", {}, el("strong", {}, settings.join(", "))), ...said.map((line) => el("p", {}, line)));
      return;
    }
    fill(
      this.details,
      el("p", {}, el("strong", {}, point.title.split("\n").join(", "))),
      el("p", { class: "note" }, settings.join("; ")),
      el("ul", {}, point.rows.map((row) =>
        el("li", {}, `seed ${row.seed}: ${form(row[this.chosen.metric])}, cell ${shown(`${row.cell}`)} `, opens[row.cell] ? el("a", { href: opens[row.cell] }, "open the run") : null),
      )),
      cells.some((cell) => !opens[cell])
        ? el("p", { class: "note" }, `A run opens from here once its directory stands in cells/CELL, below the sweep's, and the report is written again.`)
        : null,
    );
  }

  /** @param {import("./save.js").Save} how */
  save(how) {
    const svgs = [...this.picture.querySelectorAll("svg")];
    const largest = svgs.sort((a, b) => b.clientHeight - a.clientHeight)[0];
    const colors = this.chosen.kind === "lines" && this.chosen.color ? this.ordered(this.drawn.map((point) => point.color)) : [];
    const range = this.range(colors);
    const keys = colors.map((label, i) => ({ label, color: range[i] }));
    if (largest) how(`${this.chosen.metric}`, largest, keys);
  }
}

/**
 * Return a mark whose group says that it holds the points.
 * @param {any} mark
 */
function marked(mark) {
  const marks = Array.isArray(mark) ? mark.flat() : [mark];
  const [first] = marks;
  const { render } = first;
  first.render = function draw(/** @type {any} */ ...given) {
    const group = render.apply(this, given);
    group?.setAttribute("data-points", "");
    // Which row a shape is of: Plot keeps the index as the shape's datum.
    return group;
  };
  return mark;
}

/** @param {any} value */
function valueText(value) {
  if (value === null || value === undefined) return "none";
  return typeof value === "number" ? value.toLocaleString("en", { maximumSignificantDigits: 9 }) : shown(`${value}`, 40);
}

/**
 * Return what a reader expects on a logarithmic axis: powers of ten, with 2 and 5 times where these
 * are few.
 * @param {number} low
 * @param {number} high
 */
function logTicks(low, high) {
  const steps = high > 1_000 * low ? [1] : [1, 2, 5];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const step of steps) ticks.push(Number(`${step}e${power}`));
  }
  return ticks.filter((tick) => tick >= low && tick <= high);
}
