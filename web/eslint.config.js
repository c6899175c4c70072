import js from "@eslint/js";

const browser = [
  "document", "window", "location", "history", "Blob", "URL", "DecompressionStream", "Response",
  "TextDecoder", "EventSource", "Image", "XMLSerializer", "HTMLElement", "requestAnimationFrame",
  "cancelAnimationFrame", "setTimeout", "clearTimeout", "setInterval", "clearInterval", "atob",
  "matchMedia", "Node", "ResizeObserver", "performance", "getComputedStyle", "fetch", "Element", "Event", "HTMLInputElement", "HTMLSelectElement", "MutationObserver", "URLSearchParams",
];

export default [
  js.configs.recommended,
  {
    files: ["src/**/*.js"],
    languageOptions: { globals: Object.fromEntries(browser.map((name) => [name, "readonly"])) },
    rules: {
      eqeqeq: "error",
      "no-var": "error",
      "prefer-const": "error",
      // Words are user input: nothing may be put into the page as markup.
      "no-restricted-properties": [
        "error",
        { property: "innerHTML" }, { property: "outerHTML" }, { property: "insertAdjacentHTML" },
        { object: "document", property: "write" },
      ],
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
    },
  },
  {
    files: ["build.js"],
    languageOptions: { globals: { console: "readonly", process: "readonly", URL: "readonly" } },
  },
];
