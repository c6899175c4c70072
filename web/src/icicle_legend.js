// What the colors of the trie's blocks say.

import { el } from "./dom.js";

/**
 * @param {string[] | null} overlaid Names of the two runs that are laid over each other.
 * @param {boolean} isLive Whether truth may be unknown yet.
 * @param {boolean} hasFakes Whether some clients are fake.
 */
export function legendOf(overlaid, isLive, hasFakes) {
  const kinds = overlaid
    ? [
        ["both", "kept by both runs"],
        ["only-a", `only by ${overlaid[0]}`],
        ["only-b", `only by ${overlaid[1]}`],
        ["neither", "held, and dropped by both"],
      ]
    : [
        ["real", "some client holds it"],
        ["noise", "nobody does: chance kept it"],
        ["fake", "nobody does: fake clients pushed it"],
        ["undecided", "not counted yet"],
      ].filter(([kind]) => (kind !== "undecided" || isLive) && (kind !== "fake" || hasFakes));
  return [
    ...kinds.map(([kind, text]) =>
      el("span", { class: "key" }, el("span", { class: `swatch ${kind}` }), text),
    ),
    el("span", { class: "key" }, el("span", { class: "swatch dropped" }), "pale, crossed: held, but dropped here"),
    el("span", { class: "key" }, el("span", { class: `swatch ${kinds[0][0]} pale` }), "pale: many, too narrow to be drawn one by one; zoom in"),
  ];
}
