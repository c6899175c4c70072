// Colors that colour-blind people can tell apart (Okabe and Ito), read from the style sheet so that
// they follow the page's light or dark scheme.

/** @type {Map<string, string>} */
const known = new Map();
const scheme = matchMedia("(prefers-color-scheme: dark)");
scheme.addEventListener("change", () => known.clear());

/** @param {string} name */
export function color(name) {
  let value = known.get(name);
  if (value === undefined) {
    // Asking the style sheet takes long where thousands of blocks are painted.
    value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    known.set(name, value);
  }
  return value;
}

/** Lines and points of several kinds, where the page gives them no color. */
const SERIES = [
  "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f",
];

/**
 * Return a color for each label: the one that it is known by, else one that none of them has.
 * @param {string[]} labels
 * @param {Map<string, string>} fixed Colors by label.
 */
export function colorsOf(labels, fixed) {
  const taken = new Set(labels.map((label) => fixed.get(label)?.toLowerCase()));
  const free = SERIES.filter((each) => !taken.has(each));
  const others = free.length ? free : SERIES;
  let next = 0;
  return labels.map((label) => fixed.get(label) ?? others[next++ % others.length]);
}

/**
 * Call a function now and whenever the page's scheme changes.
 * @param {() => void} draw
 */
export function onScheme(draw) {
  scheme.addEventListener("change", draw);
}
