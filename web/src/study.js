// A pipeline or a repeated collection: its numbers first, its tables, and charts of what they hold.

import { cardList } from "./cards.js";
import { el, section } from "./dom.js";
import { SweepView } from "./sweep.js";
import { configuration, textTable } from "./tables.js";
import { shown } from "./text.js";

export class StudyView {
  /** @param {import("./types.js").StudyManifest} data */
  constructor(data) {
    this.data = data;
    /** @type {SweepView[]} */
    this.views = [];
    this.charts = el("div", {});
    const [first, ...others] = data.tables;
    this.element = el(
      "div",
      { class: "study" },
      cardList(data.cards),
      data.notes.map((note) => el("p", { class: "missing" }, shown(note, 400))),
      first ? section("Summary", null, textTable(first)) : null,
      this.charts,
      others.map((table) => section(table.title, null, textTable(table))),
      configuration("", data.config),
    );
    this.refresh();
  }

  /** Take what is new: a chart that is there keeps what the reader chose. */
  refresh() {
    this.data.charts.forEach((chart, i) => {
      const view = this.views[i];
      if (view) {
        Object.assign(view.page, chart);
        view.refresh();
        return;
      }
      this.views.push(new SweepView(chart));
      this.charts.append(el("div", { "data-part": `chart${i + 1}` }, this.views[i].element));
    });
  }
}
