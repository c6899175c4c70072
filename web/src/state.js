// What the reader chose, kept in the page's address: a link or a reload shows the same again.

/**
 * @typedef {HTMLInputElement | HTMLSelectElement} Control
 */

const CONTROLS = ".choice select, .choice input, .player input, .search form input";

/** What is still to be shown of an address. @type {Map<string, string>} */
let wanted = new Map();

/** @returns {URLSearchParams} */
function address() {
  return new URLSearchParams(location.hash.slice(1));
}

/**
 * Return what the address says of a name; null if nothing.
 * @param {string} name
 */
export function recalled(name) {
  return address().get(name);
}

/**
 * Keep a choice in the address; an empty one is taken out.
 * @param {string} name
 * @param {string} value
 */
export function remember(name, value) {
  const said = address();
  if ((said.get(name) ?? "") === value) return;
  if (value) said.set(name, value);
  else said.delete(name);
  const text = said.toString();
  history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
}

/**
 * Return what a control is called in the address: by the part of the page, and its label.
 * @param {Control} control
 */
function nameOf(control) {
  const part = /** @type {HTMLElement | null} */ (control.closest("[data-part]"))?.dataset.part ?? "";
  let name = control.dataset.name ?? "";
  if (control.closest(".player")) name = "layer";
  else if (control.closest(".search")) name = "word";
  else if (!name) name = control.labels?.[0]?.firstChild?.textContent?.trim().toLowerCase() ?? "";
  return part ? `${part}.${name}` : name;
}

/** @param {Control} control */
function keep(control) {
  const name = nameOf(control);
  if (!name || wanted.has(name)) return;
  // The last layer is where a page begins, also when a live one gets another.
  const isUsual = control instanceof HTMLInputElement && control.type === "range" && control.value === control.max;
  remember(name, isUsual ? "" : control.value);
}

/** @param {Element} page */
function apply(page) {
  for (const [name, value] of [...wanted]) {
    const control = [...page.querySelectorAll(CONTROLS)].map((each) => /** @type {Control} */ (each)).find((each) => nameOf(each) === name);
    if (!control) continue;
    wanted.delete(name);
    if (control instanceof HTMLSelectElement && ![...control.options].some((option) => option.value === value)) continue;
    control.value = value;
    if (control.closest(".search")) control.form?.requestSubmit();
    else control.dispatchEvent(new Event(control instanceof HTMLSelectElement ? "change" : "input"));
  }
}

/**
 * Keep the address and the page's controls the same.
 * @param {Element} page
 * @param {() => void} restore Called when the reader goes to another address of the same page.
 */
export function bind(page, restore) {
  const recall = () => {
    wanted = new Map(address());
    restore();
    apply(page);
  };
  for (const kind of ["change", "input"]) {
    // Controls that the page sets itself send events that do not bubble.
    page.addEventListener(kind, (event) => {
      const control = /** @type {Element} */ (event.target);
      if (control.matches(CONTROLS) && !control.closest(".search")) keep(/** @type {Control} */ (control));
    }, true);
  }
  new MutationObserver((changes) => {
    apply(page);
    for (const { target, type } of changes) {
      if (!(target instanceof Element) || !target.isConnected) continue;
      if (type === "attributes" && target.matches(".player input")) keep(/** @type {Control} */ (target));
      const input = target.matches(".answer") ? target.closest(".search")?.querySelector("form input") : null;
      if (input) keep(/** @type {Control} */ (input));
    }
  }).observe(page, { childList: true, subtree: true, attributes: true, attributeFilter: ["aria-valuetext"] });
  window.addEventListener("hashchange", recall);
  recall();
}
