// Words are what users typed: shown as text, with what cannot be seen made visible.

const LONGEST = 80;

/** What has no shape of its own, or would turn the text around it. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}\p{Cn}\u115f\u1160\u3164\uffa0]/gu;

/** Joiners in an emoji of several, and those between letters of scripts that are spelled with them. */
const SCRIPTS = ["Arabic", "Syriac", "Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Oriya", "Tamil"]
  .concat(["Telugu", "Kannada", "Malayalam", "Sinhala"])
  .map((name) => `\\p{Script=${name}}`)
  .join("");
const EMOJI = "\\p{Extended_Pictographic}";
const JOINER = new RegExp(
  `(?<=[${EMOJI}\\p{Emoji_Modifier}\ufe0f])\u200d(?=${EMOJI})|(?<=[${SCRIPTS}])[\u200c\u200d](?=[${SCRIPTS}])`,
  "gu",
);

const SYMBOLS = new Intl.Segmenter(undefined, { granularity: "grapheme" });
const BREAK = "\u200b";

/**
 * Return a text's symbols: what a reader sees as one character each. Where two would be one, a
 * break stands between them, which is taken with the second, so that joined they are the text.
 * @param {string} text
 * @returns {string[]}
 */
export function symbolsOf(text) {
  if (/^[\x20-\x7e]*$/.test(text)) return [...text];
  /** @type {string[]} */
  const symbols = [];
  let before = "";
  for (const { segment } of SYMBOLS.segment(text)) {
    if (segment === BREAK) before += segment;
    else {
      symbols.push(before + segment);
      before = "";
    }
  }
  if (before) symbols.push(before);
  return symbols;
}

/**
 * Return a text with every symbol visible, cut if it is very long.
 * @param {string} text
 * @param {number} [longest]
 */
export function shown(text, longest = LONGEST) {
  const symbols = symbolsOf(text);
  const cut = symbols.length > longest;
  const kept = (cut ? symbols.slice(0, longest) : symbols).join("");
  const joiners = new Set([...kept.matchAll(JOINER)].map((found) => found.index));
  const head = kept.replace(UNSEEN, (symbol, place) => {
    if (joiners.has(place)) return symbol;
    const code = /** @type {number} */ (symbol.codePointAt(0));
    return `\\u{${code.toString(16)}}`;
  });
  return cut ? `${head}\u2026 (${number(symbols.length)} symbols)` : head;
}

/**
 * Return a whole number with separators, or one with few digits.
 * @param {number | string | null | undefined} value
 */
export function number(value) {
  if (value === null || value === undefined) return "\u2013";
  if (typeof value === "string") return value === "inf" ? "\u221e" : value === "-inf" ? "\u2212\u221e" : value;
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: digits });
}

/** @param {number | null | undefined} value */
export function percent(value) {
  return value === null || value === undefined ? "\u2013" : `${(100 * value).toFixed(1)}%`;
}

/**
 * Return an epsilon with three decimals, never smaller than it is, as a terminal shows it.
 * @param {number | string | null | undefined} value
 */
export function epsilon(value) {
  if (typeof value !== "number" || !Number.isFinite(value)) return number(value);
  // A mean of equal numbers may lie above them by its last digit.
  return `${Math.ceil(value * 1e3 * (1 - 1e-12)) / 1e3}`;
}

/**
 * Return how numbers of a metric are shown.
 * @param {{path: string, share?: boolean} | undefined} metric
 * @returns {(value: any) => string}
 */
export function formOf(metric) {
  if (metric?.share) return percent;
  return metric?.path.includes("epsilon") ? epsilon : number;
}

/** @param {number} value */
export function probability(value) {
  return value > 0.9994 ? "> 0.999" : value.toLocaleString("en", { maximumSignificantDigits: 3 });
}

/** @param {number} value */
export function perClient(value) {
  return value.toLocaleString("en", { maximumSignificantDigits: 3 });
}

/**
 * Return a cell of CSV that no spreadsheet takes for a formula, as the run's own tables have it.
 * @param {unknown} value
 */
export function csvCell(value) {
  if (typeof value === "number" || value === null || value === undefined) return `${value ?? ""}`;
  let text = `${value}`;
  if (/^[=+\-@\t\r\uff1d\uff0b\uff0d\uff20']/.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Return how many votes are those of fake clients, and which share. @param {{votes: number, fakeVotes: number}} said */
export function fakeShare(said) {
  const share = said.votes > 0 ? ` (${percent(said.fakeVotes / said.votes)})` : "";
  return `${number(said.fakeVotes)}${share}`;
}
