// Tables of text, guarantees with their theorems, and configurations.

import { el, freshId, section } from "./dom.js";
import { shown } from "./text.js";

/** @typedef {import("./types.js").TextTable} TextTable */
/** @typedef {import("./types.js").Run} Run */

/** @param {TextTable} table */
export function textTable(table) {
  const cell = /** @param {"th" | "td"} tag @param {string} text @param {number} i */ (tag, text, i) =>
    el(tag, { class: i < table.labels ? "label" : null, scope: tag === "th" ? "col" : null }, shown(text, 300));
  return el(
    "div",
    {},
    el(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": table.title },
      el(
        "table",
        {},
        el("thead", {}, el("tr", {}, table.columns.map((text, i) => cell("th", text, i)))),
        el("tbody", {}, table.rows.map((row) => el("tr", {}, row.map((text, i) => cell("td", text, i))))),
      ),
    ),
    table.note ? el("p", { class: "note" }, table.note) : null,
  );
}

/** @param {Run} run */
export function privacy(run) {
  const { claims, notes } = run.privacy;
  if (!claims.length) return null;
  const heads = ["unit", "against", "bound", "epsilon or k", "delta"];
  return section(
    `What ${shown(run.name)} can claim`,
    "Each row is a guarantee against one reader, for one unit of data: an item is one contribution, a user all of a client's. Neighboring data sets differ by a swap. Point at a row, or move to it with Tab, for its theorem and what it assumes.",
    el(
      "div",
      { class: "scroll claims" },
      el(
        "table",
        {},
        el("thead", {}, el("tr", {}, heads.map((text) => el("th", { scope: "col", class: "label" }, text)))),
        el("tbody", {}, claims.map((claim) => {
          const id = freshId();
          const tip = el(
            "span",
            { role: "tooltip", id, class: "tip" },
            el("strong", {}, claim.theorem),
            claim.assumptions ? `: ${claim.assumptions}` : "",
          );
          const marks = [claim.best ? "smallest valid" : "", claim.realised ? "for the domains of this run" : ""].filter(Boolean).join(", ");
          return el(
            "tr",
            { tabindex: "0", "aria-describedby": id, class: claim.best ? "best" : null },
            el("td", { class: "label" }, claim.unit),
            el("td", { class: "label" }, claim.against),
            el("td", { class: "label" }, claim.bound, marks ? el("span", { class: "note" }, ` (${marks})`) : null, tip),
            el("td", {}, claim.value),
            el("td", {}, claim.delta),
          );
        })),
      ),
    ),
    notes.map((note) => el("p", { class: "note" }, note)),
  );
}

/** @param {string} name @param {string} text */
export function configuration(name, text) {
  if (!text) return null;
  return el("details", {}, el("summary", {}, `Configuration${name ? ` of ${shown(name)}` : ""}`), el("pre", {}, text));
}
