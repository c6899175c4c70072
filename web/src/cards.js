// The few numbers that a reader wants first.

import { el } from "./dom.js";
import { number, percent, shown } from "./text.js";

/** @typedef {import("./types.js").Run} Run */
/** @typedef {import("./types.js").Card} Card */

/** @param {Card[]} cards */
export function cardList(cards) {
  if (!cards.length) return null;
  return el(
    "dl",
    { class: "cards", "aria-label": "Summary" },
    cards.map(({ label, value, note }) =>
      el("div", { class: "card" }, el("dt", {}, shown(label)), el("dd", {}, shown(value), note ? el("span", { class: "note" }, shown(note, 200)) : null)),
    ),
  );
}

/**
 * Return a run's cards: what it found, and the smallest valid epsilons that hold before it.
 * @param {Run} run
 * @returns {Card[]}
 */
export function cardsOf(run) {
  const cards = [];
  if (run.coverage !== null && run.coverage !== undefined) {
    cards.push({ label: "coverage", value: percent(run.coverage), note: "of all new-word contributions" });
  }
  if (run.discovered !== undefined) {
    const wrong = run.discovered_false ? `${number(run.discovered_false)} held by no client` : "all held by some client";
    cards.push({ label: "words found", value: number(run.discovered), note: run.discovered ? wrong : "" });
  }
  cards.push({ label: "clients", value: number(run.clients), note: "" });
  if (run.calendar) {
    const { days, share_served: served, missed } = run.calendar;
    cards.push({ label: missed ? "days until it stopped" : "days to the result", value: days.toFixed(1), note: `${percent(served)} of the clients served in some round` });
  }
  for (const claim of run.privacy.claims) {
    if (!claim.best || claim.realised) continue;
    const who = claim.against === "server" ? "local epsilon" : "central epsilon";
    const realised = run.privacy.claims.find((each) => each.best && each.realised && each.unit === claim.unit && each.against === claim.against);
    const time = claim.against === "server" ? "" : `; before the run${realised ? `, ${realised.value} for this run` : ""}`;
    const delta = claim.delta && claim.delta !== "0" ? `, delta ${claim.delta}` : "";
    cards.push({ label: `${who}, ${claim.unit}`, value: claim.value, note: `against ${claim.against === "server" ? "the server" : claim.against}${delta}${time}` });
  }
  return cards;
}
