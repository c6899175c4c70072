// Tables of text, guarantees with their theorems, and configurations.

import { el, section } from "./dom.js";
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

/** @typedef {import("./types.js").Claim} Claim */

/** @param {Run} run */
export function privacy(run) {
  const { claims, notes } = run.privacy;
  if (!claims.length) return null;
  // Of each kind the smallest valid bound; all of a kind that has none.
  const kind = (/** @type {Claim} */ claim) => `${claim.unit} ${claim.against} ${claim.bound.startsWith("approximate k")}`;
  const proven = new Set(claims.filter((claim) => claim.best).map(kind));
  const isFirst = (/** @type {Claim} */ claim) => claim.best || !proven.has(kind(claim));
  const others = claims.filter((claim) => !isFirst(claim));
  return section(
    `What ${shown(run.name)} can claim`,
    "Each guarantee is against one reader, for one unit of data: an item is one contribution, a user all of a client's. Neighboring data sets differ by a swap. Below each stand its bound, theorem and assumptions.",
    claimTable(claims.filter(isFirst)),
    others.length
      ? el("details", {}, el("summary", {}, `${others.length} further bounds on the same, larger or of other theorems`), claimTable(others))
      : null,
    notes.map((note) => el("p", { class: "note" }, note)),
  );
}

/** @param {Claim[]} claims */
function claimTable(claims) {
  const heads = ["unit", "against", "epsilon or k", "delta"];
  return el(
    "div",
    { class: "scroll claims" },
    el(
      "table",
      {},
      el("thead", {}, el("tr", {}, heads.map((text, i) => el("th", { scope: "col", class: i < 2 ? "label" : null }, text)))),
      claims.map((claim) => {
        const marks = [claim.best ? "smallest valid" : "", claim.realised ? "for the domains of this run" : ""].filter(Boolean).join(", ");
        return el(
          "tbody",
          {},
          el(
            "tr",
            { class: claim.best ? "best" : null },
            el("td", { class: "label" }, claim.unit),
            el("td", { class: "label" }, claim.against),
            el("td", {}, claim.value),
            el("td", {}, claim.delta),
          ),
          el(
            "tr",
            { class: "reason" },
            el(
              "td",
              { class: "label", colspan: heads.length },
              `${claim.bound}${marks ? ` (${marks})` : ""}. `,
              el("span", { class: "note" }, claim.theorem, claim.assumptions ? `: ${claim.assumptions}` : ""),
            ),
          ),
        );
      }),
    ),
  );
}

/** @param {string} name @param {string} text */
export function configuration(name, text) {
  if (!text) return null;
  return el("details", {}, el("summary", {}, `Configuration${name ? ` of ${shown(name)}` : ""}`), el("pre", {}, text));
}
