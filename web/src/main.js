// Shows the page: a run, two runs, or a sweep; as it ended, or live.

import { chunk, manifest } from "./data.js";
import { el, fill, section } from "./dom.js";
import { follow } from "./live.js";
import { Overlay } from "./overlay.js";
import { RunView } from "./run.js";
import { SweepView } from "./sweep.js";
import { textTable } from "./tables.js";
import { shown } from "./text.js";
import { rowsOf } from "./trie.js";

/** @typedef {import("./types.js").RunManifest} RunManifest */
/** @typedef {import("./types.js").SweepManifest} SweepManifest */

const page = /** @type {HTMLElement} */ (document.getElementById("explorer"));

/** @param {RunManifest} data */
function showRun(data) {
  const body = el("div", {});
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
    fill(body, view.element);
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

  const measures = data.measures
    ? section("Measures", "Every measure of the run, beside the other's where there are two.", textTable(data.measures))
    : null;
  const status = el("p", { class: "live", role: "status" });
  status.hidden = !data.live;
  fill(page, el("h1", {}, shown(data.title, 200)), status, bar, body, measures);
  tabs();
  if (data.runs.length) open(data.overlays && !data.live ? "overlay" : "0");

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

/** @param {SweepManifest} data */
function showSweep(data) {
  const view = new SweepView(data);
  const status = el("p", { class: "live", role: "status" });
  status.hidden = !data.live;
  fill(page, el("h1", {}, shown(data.title, 200)), status, view.element);
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

manifest().then((data) => (data.kind === "run" ? showRun(data) : showSweep(data))).catch((error) => {
  fill(page, el("h1", {}, "This page cannot be shown"), el("p", {}, `${error}`));
  throw error;
});
