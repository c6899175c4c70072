// Elements, made of text and never of markup.

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 */

/**
 * Return an element. Attributes whose name begins with "on" are listeners.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "value" && "value" in made) /** @type {any} */ (made).value = value;
    else made.setAttribute(name, value === true ? "" : `${value}`);
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    made.append(child instanceof Node ? child : `${child}`);
  }
  return made;
}

/**
 * Put children in the place of those that an element has.
 * @param {Element} parent
 * @param {...Child} children
 */
export function fill(parent, ...children) {
  parent.replaceChildren(
    .../** @type {(Node | string)[]} */ (
      children.filter((child) => child !== null && child !== undefined && child !== false)
    ),
  );
}

let lastId = 0;

/** Return an id that no other element has. */
export function freshId() {
  lastId += 1;
  return `e${lastId}`;
}

/**
 * Return a section with its heading and a sentence that says what it shows.
 * @param {string} title
 * @param {Child} lead
 * @param {...(Child | Child[])} children
 */
export function section(title, lead, ...children) {
  const id = freshId();
  return el(
    "section",
    { "aria-labelledby": id },
    el("h2", { id }, title),
    lead ? el("p", { class: "lead" }, lead) : null,
    ...children,
  );
}

/**
 * Return a labeled choice.
 * @param {string} label
 * @param {{value: string, label: string}[]} options
 * @param {string} chosen
 * @param {(value: string) => void} onchange
 * @param {string} [name] In the page's address, where its label changes.
 */
export function choice(label, options, chosen, onchange, name) {
  const select = el(
    "select",
    { "data-name": name, onchange: () => onchange(select.value) },
    options.map(({ value, label: text }) => el("option", { value }, text)),
  );
  select.value = chosen;
  return el("label", { class: "choice" }, `${label} `, select);
}

/**
 * Return text that keeps its own direction, whatever stands around it.
 * @param {string} text
 */
export function bdi(text) {
  return el("bdi", { class: "word" }, text);
}

/**
 * Call a function when an element gets another width, and when it gets its first; in the next frame,
 * since what it draws has sizes of its own, which are not to be told within the same one.
 * @param {Element} element
 * @param {() => void} then
 */
export function onResize(element, then) {
  let before = 0;
  new ResizeObserver(() => {
    const width = element.clientWidth;
    if (width && width !== before) requestAnimationFrame(then);
    before = width;
  }).observe(element);
}
