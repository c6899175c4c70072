// The page's data: pieces that are decompressed when they are first asked for.

/** @typedef {import("./types.js").Manifest} Manifest */
/** @typedef {import("./types.js").Columns} Columns */

/** @type {Map<string, Promise<any>>} */
const read = new Map();

/**
 * Return a piece of the page's data.
 * @param {string} name
 * @returns {Promise<any>}
 */
export function chunk(name) {
  let piece = read.get(name);
  if (!piece) {
    const element = document.getElementById(`chunk-${name}`);
    piece = element ? unpack(element.textContent ?? "") : ask(name);
    read.set(name, piece);
  }
  return piece;
}

/** @returns {Promise<Manifest>} */
export function manifest() {
  return chunk("manifest");
}

/**
 * Return what the server of a live page has of a name.
 * @param {string} name
 */
async function ask(name) {
  const answer = await fetch(`chunk/${name}`);
  if (!answer.ok) throw new Error(`The run's data are not to be had any more (${answer.status}).`);
  return unpack(await answer.text());
}

/**
 * Return what was packed: JSON, compressed, in base64.
 * @param {string} text
 * @returns {Promise<any>}
 */
export async function unpack(text) {
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/**
 * Return the rows of a table, as objects.
 * @param {Columns} columns
 * @returns {any[]}
 */
export function rowsOf(columns) {
  const names = Object.keys(columns);
  const length = names.length ? columns[names[0]].length : 0;
  return Array.from({ length }, (_, i) =>
    Object.fromEntries(names.map((name) => [name, columns[name][i]])),
  );
}
