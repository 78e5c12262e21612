/**
 * Keeps what is on the page current: one EventSource on /events for all topics the page shows.
 *
 * `<section data-live-topic="jobs job:5" hx-get="…" hx-trigger="live" hx-swap="outerMorph">` is fetched again
 * when one of its topics changes (at most once a second, and not while the tab is hidden). The topics of the
 * page are those of its elements plus `<body data-topics>`. Any other script may listen for `live` too.
 * The indicator in the header says whether news arrives. Losing the stream loses nothing: on the way back
 * everything is fetched once.
 */

const PAUSE_MS = 1000;
const LONGEST_MS = 60000;
const indicator = document.getElementById("live-indicator");
const address = document.body.dataset.eventsUrl;
const due = new WeakMap();
let source = null;
let subscribed = "";
let attempts = 0;
let timer = 0;
let missed = false;

function topicsOf(element) {
  return (element.dataset.liveTopic ?? "").split(/\s+/).filter(Boolean);
}

function elements() {
  return [...document.querySelectorAll("[data-live-topic]")];
}

function wanted() {
  const topics = new Set((document.body.dataset.topics ?? "").split(/\s+/).filter(Boolean));
  for (const element of elements()) topicsOf(element).forEach((topic) => topics.add(topic));
  return [...topics].sort();
}

function show(state, text) {
  if (!indicator) return;
  indicator.hidden = false;
  indicator.dataset.state = state;
  const words = indicator.querySelector("[data-part=label]");
  if (words.textContent !== text) words.textContent = text;
}

function refresh(element) {
  const last = due.get(element) ?? 0;
  const now = Date.now();
  if (last > now) return; // one is on its way already and will see this change too
  const at = Math.max(now, last + PAUSE_MS);
  due.set(element, at + 1);
  setTimeout(() => {
    due.set(element, Date.now());
    if (document.hidden) missed = true;
    else if (element.isConnected) element.dispatchEvent(new CustomEvent("live", { bubbles: false }));
  }, at - now);
}

function changed(topic) {
  if (document.hidden) missed = true;
  else elements().filter((element) => !topic || topicsOf(element).includes(topic)).forEach(refresh);
}

function connect() {
  const topics = wanted();
  clearTimeout(timer);
  source?.close();
  source = null;
  subscribed = topics.join(" ");
  if (!address || !topics.length) return;
  const query = new URLSearchParams(topics.map((topic) => ["topic", topic]));
  const opened = new EventSource(`${address}?${query}`);
  source = opened;
  opened.onopen = () => {
    if (attempts) changed("");
    attempts = 0;
    show("live", "Live");
  };
  opened.addEventListener("change", (event) => changed(event.data.trim()));
  opened.addEventListener("resync", () => changed(""));
  opened.addEventListener("signed-out", signedOut);
  opened.onerror = () => {
    // The browser would try again by itself after a broken connection, but not after a refusal; do both here.
    if (source !== opened) return;
    opened.close();
    attempts += 1;
    if (attempts > 1) show("waiting", "Reconnecting…");
    const pause = Math.min(LONGEST_MS, 500 * 2 ** Math.min(attempts, 8));
    timer = setTimeout(connect, pause / 2 + (Math.random() * pause) / 2);
  };
}

function signedOut() {
  source?.close();
  source = null;
  show("out", "Signed out");
  const notice = document.getElementById("signed-out-notice");
  if (notice) notice.hidden = false;
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden || !missed) return;
  missed = false;
  changed("");
});
// A background request must not take the page, and what is typed in it, away: say so and leave it as it is.
document.addEventListener("htmx:after:request", (event) => {
  if (event.detail.ctx.response.status !== 401) return;
  event.preventDefault();
  signedOut();
});
document.addEventListener("htmx:after:swap", () => wanted().join(" ") !== subscribed && connect());
window.addEventListener("pagehide", () => source?.close());
window.addEventListener("pageshow", (event) => event.persisted && connect());
window.addEventListener("online", () => attempts && connect());
connect();
