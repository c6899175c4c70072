// Saves what the page shows: text as a file, pictures as SVG and PNG.

import { el } from "./dom.js";

/**
 * Hand a file to the reader.
 * @param {string} name
 * @param {Blob} content
 */
function download(name, content) {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** @param {string} name @param {string} text @param {string} type */
export function saveText(name, text, type) {
  download(name, new Blob([text], { type }));
}

/** @typedef {{label: string, color: string}} Key What a color stands for. */

const KEY_HEIGHT = 20;
const SPACE = "http://www.w3.org/2000/svg";

/** @param {string} tag @param {Record<string, any>} attributes @param {string} [text] */
function shape(tag, attributes, text = "") {
  const made = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, `${value}`);
  made.textContent = text;
  return made;
}

/**
 * Return a picture as SVG that needs no style sheet, what its colors stand for below it.
 * @param {SVGSVGElement} svg
 * @param {Key[]} keys
 */
export function svgText(svg, keys) {
  const copy = /** @type {SVGSVGElement} */ (svg.cloneNode(true));
  const style = getComputedStyle(svg);
  copy.setAttribute("xmlns", SPACE);
  copy.setAttribute("color", style.color);
  copy.setAttribute("font-family", "system-ui, sans-serif");
  copy.setAttribute("font-size", "12");
  const { width, height } = sizeOf(svg, keys);
  copy.setAttribute("width", `${width}`);
  copy.setAttribute("height", `${height}`);
  copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
  copy.prepend(shape("rect", { width, height, fill: getComputedStyle(document.body).backgroundColor }));
  keys.forEach(({ label, color }, i) => {
    const y = height - (keys.length - i) * KEY_HEIGHT;
    copy.append(shape("rect", { x: 16, y: y + 3, width: 12, height: 12, fill: color }));
    copy.append(shape("text", { x: 34, y: y + 13, fill: style.color }, label));
  });
  return new XMLSerializer().serializeToString(copy);
}

/** @param {SVGSVGElement} svg @param {Key[]} keys */
function sizeOf(svg, keys) {
  const { width, height } = svg.getBoundingClientRect();
  return { width, height: height + keys.length * KEY_HEIGHT };
}

/** @param {string} name @param {SVGSVGElement} svg @param {Key[]} [keys] */
export function saveSvg(name, svg, keys = []) {
  saveText(`${name}.svg`, svgText(svg, keys), "image/svg+xml");
}

/**
 * @param {string} name
 * @param {SVGSVGElement} svg
 * @param {Key[]} [keys]
 */
export async function savePng(name, svg, keys = []) {
  const { width, height } = sizeOf(svg, keys);
  const image = new Image();
  const url = URL.createObjectURL(new Blob([svgText(svg, keys)], { type: "image/svg+xml" }));
  try {
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = 2 * width;
    canvas.height = 2 * height;
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    saveCanvas(name, canvas);
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** @param {string} name @param {HTMLCanvasElement} canvas */
export function saveCanvas(name, canvas) {
  canvas.toBlob((content) => content && download(`${name}.png`, content), "image/png");
}

/** @typedef {(name: string, svg: SVGSVGElement, keys?: Key[]) => void} Save */

/**
 * Return the buttons below a picture.
 * @param {(how: Save) => void} save Saves the picture in one way.
 */
export function saveButtons(save) {
  return el(
    "div",
    { class: "buttons" },
    el("button", { type: "button", onclick: () => save(saveSvg) }, "Save SVG"),
    el("button", { type: "button", onclick: () => save(savePng) }, "Save PNG"),
  );
}
