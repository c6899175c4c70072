// Colors that colour-blind people can tell apart (Okabe and Ito), read from the style sheet so that
// they follow the page's light or dark scheme.

/** @param {string} name */
export function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Lines and points of several kinds. */
export const SERIES = [
  "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f",
];

/**
 * Call a function now and whenever the page's scheme changes.
 * @param {() => void} draw
 */
export function onScheme(draw) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}
