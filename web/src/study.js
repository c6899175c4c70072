// A pipeline or a repeated collection: its numbers first, its tables, and charts of what they hold.

import { cardList } from "./cards.js";
import { el, section } from "./dom.js";
import { SweepView } from "./sweep.js";
import { configuration, textTable } from "./tables.js";
import { shown } from "./text.js";

/** @param {import("./types.js").StudyManifest} data */
export function study(data) {
  const [first, ...others] = data.tables;
  return el(
    "div",
    { class: "study" },
    cardList(data.cards),
    data.notes.map((note) => el("p", { class: "missing" }, shown(note, 400))),
    first ? section("Summary", null, textTable(first)) : null,
    data.charts.map((chart, i) => el("div", { "data-part": `chart${i + 1}` }, new SweepView(chart).element)),
    others.map((table) => section(table.title, null, textTable(table))),
    configuration("", data.config),
  );
}
