// Words as a table that sorts, filters and is saved as CSV.

import { bdi, choice, el, fill } from "./dom.js";
import { saveText } from "./save.js";
import { csvCell, number, shown } from "./text.js";

/**
 * @typedef {object} Column
 * @property {string} name Of the value, and of the column in CSV.
 * @property {string} label
 * @property {string} [help]
 * @property {boolean} [text] Whether it is text.
 * @property {(row: any) => import("./dom.js").Child} [cell]
 */

const AT_ONCE = 100;

/**
 * Return a table of rows.
 * @param {object} options
 * @param {string} options.name Of the file and the table.
 * @param {any[]} options.rows
 * @param {Column[]} options.columns
 * @param {{value: string, label: string, keeps: (row: any) => boolean}[]} options.filters
 * @param {string} options.sorted Name of the column that it is sorted by at first.
 * @param {(row: any) => void} [options.open] Called when a word is chosen.
 * @param {(rows: any[]) => string | null} [options.note] What stands below, given the rows that are shown.
 */
export function wordTable({ name, rows, columns, filters, sorted, open, note }) {
  let by = sorted, ascending = false, most = AT_ONCE, filter = filters[0], part = "";
  const body = el("tbody");
  const count = el("p", { class: "note", role: "status" });
  const remark = el("p", { class: "note remark" });
  const more = el("button", { type: "button", onclick: () => { most += 4 * AT_ONCE; draw(); } }, "Show more");
  const heads = columns.map((column) => {
    const head = el(
      "th",
      { scope: "col", class: column.text ? "label" : null },
      el(
        "button",
        {
          type: "button",
          title: column.help,
          onclick: () => {
            ascending = by === column.name ? !ascending : Boolean(column.text);
            by = column.name;
            draw();
          },
        },
        column.label,
      ),
    );
    return { column, head };
  });

  function chosen() {
    const wanted = rows.filter((row) => filter.keeps(row) && (!part || row.word.includes(part)));
    const sign = ascending ? 1 : -1;
    return wanted.sort((a, b) => sign * compare(a[by], b[by]) || compare(a.word, b.word));
  }

  function draw() {
    const wanted = chosen();
    for (const { column, head } of heads) {
      head.setAttribute("aria-sort", column.name !== by ? "none" : ascending ? "ascending" : "descending");
    }
    fill(
      body,
      ...wanted.slice(0, most).map((row) =>
        el("tr", {}, columns.map((column) =>
          el("td", { class: column.text ? "label" : null }, cellOf(column, row)),
        )),
      ),
    );
    remark.textContent = note?.(wanted.slice(0, most)) ?? "";
    more.hidden = wanted.length <= most;
    count.textContent = `${number(Math.min(most, wanted.length))} of ${number(wanted.length)} rows are shown; ${number(rows.length)} in all.`;
  }

  /** @param {Column} column @param {any} row */
  function cellOf(column, row) {
    if (column.cell) return column.cell(row);
    const value = row[column.name];
    if (column.name === "word" && open) {
      return el("button", { type: "button", class: "open", onclick: () => open(row) }, bdi(shown(value)));
    }
    if (column.text) return bdi(shown(`${value ?? ""}`));
    return number(value);
  }

  function save() {
    const lines = [columns.map((column) => csvCell(column.name)).join(",")];
    for (const row of chosen()) lines.push(columns.map((column) => csvCell(row[column.name])).join(","));
    saveText(`${name}.csv`, `${lines.join("\n")}\n`, "text/csv");
  }

  const search = el("input", {
    type: "search",
    oninput: () => { part = search.value; most = AT_ONCE; draw(); },
  });
  draw();
  return el(
    "div",
    { class: "words" },
    el(
      "div",
      { class: "controls" },
      choice("Show", filters.map(({ value, label }) => ({ value, label })), filter.value, (value) => {
        filter = filters.find((each) => each.value === value) ?? filters[0];
        most = AT_ONCE;
        draw();
      }),
      el("label", { class: "choice" }, "containing ", search),
      el("button", { type: "button", onclick: save }, "Save CSV"),
    ),
    el(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": name },
      el("table", {}, el("thead", {}, el("tr", {}, heads.map(({ head }) => head))), body),
    ),
    remark,
    more,
    count,
  );
}

/** @param {any} a @param {any} b */
function compare(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return -1;
  if (b === null || b === undefined) return 1;
  return a < b ? -1 : 1;
}
