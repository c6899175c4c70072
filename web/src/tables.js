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
    "Each guarantee is against one reader, for one unit of data: an item is one contribution, a user all of a client's. Neighboring data sets differ by one replacement. Epsilons, or k, are the smallest valid ones: before the run for all that its plan allows, and for what this run did. Below each stand its bound, theorem and assumptions.",
    claimTable(claims.filter(isFirst)),
    others.length
      ? el("details", {}, el("summary", {}, `${others.length} further bounds on the same, larger or of other theorems`), claimTable(others))
      : null,
    notes.map((note) => el("p", { class: "note" }, note)),
  );
}

/**
 * Return claims by what they are about: the smallest valid one before the run, and that for it.
 * @param {Claim[]} claims
 * @returns {Claim[][]}
 */
function paired(claims) {
  /** @type {Map<string, Claim[]>} */
  const groups = new Map();
  claims.forEach((claim, i) => {
    const key = claim.best ? `${claim.unit} ${claim.against}` : `${i}`;
    groups.set(key, [...(groups.get(key) ?? []), claim]);
  });
  return [...groups.values()];
}

/** @param {Claim[]} claims */
function claimTable(claims) {
  const heads = ["unit", "against", "before the run", "for this run", "delta"];
  return el(
    "div",
    { class: "scroll claims" },
    el(
      "table",
      {},
      el("thead", {}, el("tr", {}, heads.map((text, i) => el("th", { scope: "col", class: i < 2 ? "label" : null }, text)))),
      paired(claims).map((group) => {
        const [first] = group;
        const before = group.find((claim) => !claim.realised);
        // What holds before a run holds for it, too.
        const after = group.find((claim) => claim.realised) ?? first;
        return el(
          "tbody",
          {},
          el(
            "tr",
            { class: first.best ? "best" : null },
            el("td", { class: "label" }, first.unit),
            el("td", { class: "label" }, first.against),
            el("td", {}, before ? before.value : "\u2013"),
            el("td", {}, after.value),
            el("td", {}, [...new Set(group.map((claim) => claim.delta))].join(", ")),
          ),
          group.map((claim) =>
            el(
              "tr",
              { class: "reason" },
              el(
                "td",
                { class: "label", colspan: heads.length },
                `${claim.realised ? "For the domains of this run: " : ""}${claim.bound}. `,
                el("span", { class: "note" }, claim.theorem, claim.assumptions ? `: ${claim.assumptions}` : ""),
              ),
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
