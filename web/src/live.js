// Follows a run while it goes on, by server-sent events.

/**
 * Call a handler for each event, and say how the run stands.
 * @param {HTMLElement} status
 * @param {Record<string, (said: any) => any>} handlers
 */
export function follow(status, handlers) {
  const events = new EventSource("events");
  let ended = false;
  /** @type {Promise<any>} */
  let before = Promise.resolve();
  status.textContent = "Live: this page follows the run.";
  for (const [name, handle] of Object.entries(handlers)) {
    events.addEventListener(name, (event) => {
      const said = JSON.parse(/** @type {MessageEvent} */ (event).data);
      // One after the other: a piece that takes longer must not be overtaken by the next.
      before = before.then(() => handle(said)).catch((error) => {
        status.textContent = `${error}`;
      });
    });
  }
  events.addEventListener("status", (event) => {
    status.textContent = `Live: ${JSON.parse(/** @type {MessageEvent} */ (event).data)}.`;
  });
  events.addEventListener("end", (event) => {
    ended = true;
    events.close();
    status.textContent = `The run has ended. ${JSON.parse(/** @type {MessageEvent} */ (event).data)}`;
  });
  events.addEventListener("failure", (event) => {
    ended = true;
    events.close();
    status.classList.add("failed");
    status.setAttribute("role", "alert");
    status.textContent = `The run failed. ${JSON.parse(/** @type {MessageEvent} */ (event).data)}`;
  });
  events.addEventListener("error", () => {
    if (ended) return;
    events.close();
    status.classList.add("failed");
    status.textContent = "The run is not there any more: it has ended, or was stopped.";
  });
}
