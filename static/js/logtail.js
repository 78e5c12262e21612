/**
 * The live end of one log: an EventSource that is opened again from where it stopped. Used by logview.js.
 *
 * The browser's own reconnect would ask from the old place, so each attempt is a new EventSource with `from`
 * set to the number of lines we have.
 */

const LONGEST_MS = 30000;

/** Follow `address`; returns `{stop}`. `onState` hears connecting, live, reconnecting, ended and signed-out. */
export function followLines(address, from, { onLines, onState }) {
  let source = null;
  let timer = 0;
  let attempts = 0;
  let stopped = false;

  const finish = (state) => {
    stopped = true;
    source?.close();
    clearTimeout(timer);
    if (state) onState(state);
  };
  const open = () => {
    if (stopped) return;
    onState(attempts ? "reconnecting" : "connecting");
    const opened = new EventSource(`${address}?from=${from()}`);
    source = opened;
    opened.onopen = () => {
      attempts = 0;
      onState("live");
    };
    opened.addEventListener("lines", (event) => {
      const { first, lines } = JSON.parse(event.data);
      onLines(first, lines);
    });
    opened.addEventListener("end", () => finish("ended"));
    opened.addEventListener("signed-out", () => finish("signed-out"));
    opened.onerror = () => {
      opened.close();
      if (stopped || source !== opened) return;
      attempts += 1;
      onState("reconnecting");
      const pause = Math.min(LONGEST_MS, 400 * 2 ** Math.min(attempts, 7));
      timer = setTimeout(open, pause / 2 + (Math.random() * pause) / 2);
    };
  };
  open();
  return { stop: () => finish(null) };
}
