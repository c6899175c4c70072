// Shows the page: a run, two runs, a sweep, a pipeline or a repeated collection; as it ended, or live.

import { cardList, cardsOf } from "./cards.js";
import { chunk, manifest, rowsOf } from "./data.js";
import { el, fill, section } from "./dom.js";
import { follow } from "./live.js";
import { Overlay } from "./overlay.js";
import { RunView } from "./run.js";
import { bind, recalled, remember } from "./state.js";
import { StudyView } from "./study.js";
import { SweepView } from "./sweep.js";
import { privacy, textTable } from "./tables.js";
import { shown } from "./text.js";

/** @typedef {import("./types.js").RunManifest} RunManifest */
/** @typedef {import("./types.js").SweepManifest} SweepManifest */

const page = /** @type {HTMLElement} */ (document.getElementById("explorer"));

/** @param {RunManifest} data */
function showRun(data) {
  const body = el("div", {});
  const first = data.overlays && !data.live ? "overlay" : "0";
  const bar = el("div", { class: "tabs", role: "tablist", "aria-label": "Runs" });
  /** @type {Map<string, RunView | Overlay>} */
  const views = new Map();

  /** @param {string} name */
  function open(name) {
    let view = views.get(name);
    if (!view) {
      view = name === "overlay" ? new Overlay(data) : new RunView(data.runs[Number(name)], data);
      views.set(name, view);
    }
    const runs = name === "overlay" ? data.runs : [data.runs[Number(name)]];
    const tops = runs.map((run) =>
      el("div", {}, runs.length > 1 ? el("h2", {}, shown(run.name)) : null, cardList(cardsOf(run)), runs.length > 1 ? null : privacy(run)),
    );
    body.dataset.part = name === first ? "" : name;
    const all = data.measures && data.runs.length < 2 ? measures(data.measures) : null;
    fill(body, ...tops, all, view.element);
    remember("tab", name === first ? "" : name);
    for (const tab of bar.children) {
      tab.setAttribute("aria-selected", `${/** @type {HTMLElement} */ (tab).dataset.view === name}`);
    }
  }

  function tabs() {
    const names = data.runs.map((run, i) => [`${i}`, shown(run.name)]);
    if (data.runs.length === 2) names.push(["overlay", "Both, overlaid"]);
    fill(
      bar,
      ...names.map(([name, label]) =>
        el("button", { type: "button", role: "tab", "data-view": name, onclick: () => open(name) }, label),
      ),
    );
    bar.hidden = data.runs.length < 2;
  }

  const status = el("p", { class: "live", role: "status" });
  status.hidden = !data.live;
  const comparison = data.comparison
    ? section("Comparison", null, el("div", { class: "comparison" }, textTable(data.comparison)), data.measures ? measures(data.measures) : null)
    : null;
  fill(page, el("h1", {}, shown(data.title, 200)), status, comparison, bar, body);
  tabs();
  const restore = () => {
    const said = recalled("tab") ?? first;
    if (data.runs.length) open([...bar.children].some((tab) => /** @type {HTMLElement} */ (tab).dataset.view === said) ? said : first);
  };
  bind(page, restore);

  if (data.live) {
    follow(status, {
      /** @param {any} run */
      run(run) {
        data.runs.push(run);
        tabs();
        open(`${data.runs.length - 1}`);
      },
      /** @param {any} round */
      async round(round) {
        const run = data.runs[round.run];
        append(run.layers, round.layer);
        if (round.chunk) {
          run.rounds.push([round.layer.pass, round.layer.layer, round.chunk]);
          for (const row of rowsOf((await chunk(round.chunk)).ranges)) append(run.votes, row);
        }
        const view = views.get(`${round.run}`);
        if (view instanceof RunView) view.refresh();
      },
    });
  }
}

/**
 * Return every measure of the runs next to each other.
 * @param {import("./types.js").TextTable} table
 */
function measures(table) {
  return el("details", {}, el("summary", {}, "All measures"), textTable(table));
}

/**
 * Show a sweep, or what happens over time; a live page takes what is new.
 * @param {SweepManifest | import("./types.js").StudyManifest} data
 * @param {SweepView | StudyView} view
 */
function showResults(data, view) {
  const status = el("p", { class: "live", role: "status" });
  status.hidden = !data.live;
  fill(page, el("h1", {}, shown(data.title, 200)), status, view.element);
  bind(page, () => {});
  if (data.live) {
    follow(status, {
      /** @param {any} said */
      async results(said) {
        Object.assign(data, await chunk(said.chunk));
        view.refresh();
      },
    });
  }
}

/**
 * Put a row at the end of a table.
 * @param {import("./types.js").Columns} columns
 * @param {Record<string, any>} row
 */
function append(columns, row) {
  for (const [name, value] of Object.entries(row)) (columns[name] ??= []).push(value);
}

/** @param {import("./types.js").Manifest} data */
function show(data) {
  if (data.kind === "run") showRun(data);
  else if (data.kind === "sweep") showResults(data, new SweepView(data));
  else showResults(data, new StudyView(data));
}

manifest().then(show).catch((error) => {
  fill(page, el("h1", {}, "This page cannot be shown"), el("p", {}, `${error}`));
  throw error;
});
