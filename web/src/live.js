// Follows a run while it goes on, by server-sent events.

/**
 * Call a handler for each event, and say how the run stands.
 * @param {HTMLElement} status
 * @param {Record<string, (said: any) => void>} handlers
 */
export function follow(status, handlers) {
  const events = new EventSource("events");
  let ended = false;
  status.textContent = "Live: this page follows the run.";
  for (const [name, handle] of Object.entries(handlers)) {
    events.addEventListener(name, (event) => handle(JSON.parse(/** @type {MessageEvent} */ (event).data)));
  }
  events.addEventListener("status", (event) => {
    status.textContent = `Live: ${JSON.parse(/** @type {MessageEvent} */ (event).data)}.`;
  });
  events.addEventListener("end", (event) => {
    ended = true;
    events.close();
    status.textContent = `The run has ended. ${JSON.parse(/** @type {MessageEvent} */ (event).data)}`;
  });
  events.addEventListener("error", () => {
    if (ended) return;
    events.close();
    status.textContent = "The run is not there any more: it has ended, or was stopped.";
  });
}
