// Saves what the page shows: text as a file, pictures as SVG and PNG.

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

/**
 * Return a picture as SVG that needs no style sheet.
 * @param {SVGSVGElement} svg
 */
export function svgText(svg) {
  const copy = /** @type {SVGSVGElement} */ (svg.cloneNode(true));
  const style = getComputedStyle(svg);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("color", style.color);
  copy.setAttribute("font-family", "system-ui, sans-serif");
  copy.setAttribute("font-size", "12");
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  ground.setAttribute("width", "100%");
  ground.setAttribute("height", "100%");
  ground.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}

/** @param {string} name @param {SVGSVGElement} svg */
export function saveSvg(name, svg) {
  saveText(`${name}.svg`, svgText(svg), "image/svg+xml");
}

/**
 * @param {string} name
 * @param {SVGSVGElement} svg
 */
export async function savePng(name, svg) {
  const { width, height } = svg.getBoundingClientRect();
  const image = new Image();
  const url = URL.createObjectURL(new Blob([svgText(svg)], { type: "image/svg+xml" }));
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
