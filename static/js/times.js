/**
 * Keeps `<time datetime data-relative>` current: relative words, the exact local time on hover.
 *
 * The server writes both already; without JavaScript they are right at the moment of rendering.
 */

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const full = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" }); // 2026-01-31 08:05:00
const FORMATS = { clock, full };
const DAY = 86400;
const STEPS = [["s", 1, 60], ["min", 60, 3600], ["h", 3600, DAY], ["d", DAY, 60 * DAY], ["months", 30 * DAY, Infinity]];

/** Words for a moment as seen from now, the same as the server's: "just now", "3 min ago", "in 2 h". */
export function relativeWords(moment, now = Date.now()) {
  const seconds = (moment - now) / 1000;
  const size = Math.abs(seconds);
  if (size < 10) return "just now";
  const [unit, length] = STEPS.find(([, , limit]) => size < limit);
  const words = `${Math.floor(size / length)} ${unit}`;
  return seconds < 0 ? `${words} ago` : `in ${words}`;
}

/** Length of time as the server writes it: "42 s", "3 min 20 s", "2 h 5 min", "3 d 4 h". */
export function durationWords(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

function refresh(root = document) {
  for (const element of root.querySelectorAll("time[data-relative]")) {
    const moment = Date.parse(element.dateTime);
    if (Number.isNaN(moment)) continue;
    element.title = exact.format(moment);
    const text = FORMATS[element.dataset.relative]?.format(moment) ?? relativeWords(moment);
    if (element.textContent !== text) element.textContent = text;
  }
  for (const element of root.querySelectorAll("[data-running-since]")) {
    const since = Date.parse(element.dataset.runningSince);
    if (!Number.isNaN(since)) element.textContent = durationWords((Date.now() - since) / 1000);
  }
}

refresh();
setInterval(() => document.hidden || refresh(), 1000);
document.addEventListener("htmx:after:swap", () => refresh());
