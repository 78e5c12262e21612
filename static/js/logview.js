/**
 * The log viewer: a virtual list over an archive that may have millions of lines, live at its end.
 *
 * Used by templates/jobs/_logview.html. logstore.js holds a window of lines, ansi.js turns them into spans,
 * loglist.js draws them, and this module connects them with the streams, the tool bar and the address bar
 * (`#log=12&L=345`, so that choice and place survive a refresh and can be sent to a colleague).
 */

import { LogList } from "./loglist.js";
import { LogStore } from "./logstore.js";
import { followLines } from "./logtail.js";

const STREAMS_EVERY_MS = 5000;
const count = new Intl.NumberFormat("en");

class LogView {
  constructor(root) {
    this.root = root;
    this.base = root.dataset.base;
    this.streams = [];
    this.stream = null;
    this.store = null;
    this.tail = null;
    this.hit = -1;
    this.fresh = 0;
    this.list = new LogList(this.part("scroll"), {
      onMoved: (atEnd) => this.moved(atEnd),
      onLine: (number) => this.toAddress(number),
    });
    this.bindTools();
    this.load().then(() => setInterval(() => document.hidden || this.load(), STREAMS_EVERY_MS));
    window.addEventListener("hashchange", () => this.fromAddress());
    window.addEventListener("pagehide", () => this.tail?.stop());
    window.addEventListener("pageshow", (event) => event.persisted && this.startTail());
    // The rest of the page opens a log with `new CustomEvent("berth:open-log", {detail: {pod, container}})`.
    document.addEventListener("berth:open-log", (event) => {
      this.chosen(event.detail.pod, event.detail.container);
      this.root.scrollIntoView({ block: "start" });
    });
  }

  part(name) {
    return this.root.querySelector(`[data-part=${name}]`);
  }

  // Streams: which container of which pod in which restart -------------------------------------------------

  async load() {
    let answer;
    try {
      answer = await getJson(`${this.base}streams`);
    } catch (error) {
      if (!this.stream) this.status("bad", `The list of logs could not be read: ${error.message}. Trying again…`);
      return;
    }
    this.streams = answer.streams;
    this.drawSelectors();
    if (!this.stream) this.choose(this.addressed() ?? preferred(this.streams), { keepLine: true });
    else this.update(this.streams.find((stream) => stream.id === this.stream.id));
  }

  addressed() {
    const id = Number(new URLSearchParams(location.hash.slice(1)).get("log"));
    return this.streams.find((stream) => stream.id === id);
  }

  update(stream) {
    if (!stream) return;
    const before = this.stream;
    this.stream = stream;
    if (stream.lines > this.store.total) this.grow(stream.lines);
    if (stream.complete && !before.complete) this.tail?.stop();
    this.say();
  }

  choose(stream, { keepLine = false } = {}) {
    this.tail?.stop();
    this.tail = null;
    this.hit = -1;
    if (!stream) {
      this.stream = null;
      this.empty();
      return;
    }
    this.stream = stream;
    this.store = new LogStore(`${this.base}${stream.id}/lines`, stream.lines, {
      onLoaded: () => this.list.draw(),
      onGrown: (total) => this.grow(total),
    });
    this.list.show(this.store);
    this.drawSelectors();
    this.part("download").href = `${this.base}${stream.id}/raw`;
    const line = keepLine ? this.addressedLine() : null;
    if (line !== null) this.jump(line);
    else this.follow(true);
    this.startTail();
    this.say();
  }

  drawSelectors() {
    const pods = new Map();
    for (const stream of this.streams) if (!pods.has(stream.pod)) pods.set(stream.pod, stream);
    const pod = this.stream?.pod ?? pods.keys().next().value;
    const inPod = this.streams.filter((stream) => stream.pod === pod);
    const latest = new Map();
    for (const stream of inPod) {
      const known = latest.get(stream.container);
      if (!known || stream.restart > known.restart) latest.set(stream.container, stream);
    }
    fill(this.part("pod"), [...pods.values()], (stream) => [
      stream.pod,
      stream.rank === null || stream.rank === undefined ? stream.pod : `Worker ${stream.rank} · ${stream.pod}`,
    ], pod);
    fill(this.part("container"), [...latest.values()], (stream) => [
      stream.container,
      stream.kind === "main" ? stream.container : `${stream.container} (${stream.kind})`,
    ], this.stream?.container);
    const runs = inPod.filter((stream) => stream.container === this.stream?.container);
    fill(this.part("restart"), runs, (stream) => [
      String(stream.id),
      stream.restart === 0 ? "first run" : `restart ${stream.restart}`,
    ], String(this.stream?.id));
  }

  /** After a choice of pod or container: the newest run, and the same container where there is one. */
  chosen(pod, container) {
    const inPod = this.streams.filter((stream) => stream.pod === pod);
    const same = inPod.filter((stream) => stream.container === container);
    this.choose(same.length ? newest(same) : preferred(inPod));
    this.toAddress(null);
  }

  // Live end ------------------------------------------------------------------------------------------------

  startTail() {
    if (!this.stream || this.stream.complete) return;
    const stream = this.stream;
    this.tail?.stop();
    this.tail = followLines(`${this.base}${stream.id}/follow`, () => this.store.total, {
      onLines: (first, lines) => stream.id === this.stream?.id && this.store.append(first, lines),
      onState: (state) => {
        this.tailState = state;
        this.say();
        if (state === "ended") this.load();
      },
    });
  }

  grow(total) {
    const added = this.store.setTotal(total);
    if (this.following) this.list.toEnd();
    else {
      this.fresh += added;
      this.list.draw();
    }
    this.say();
  }

  follow(on) {
    this.following = on;
    this.part("follow").setAttribute("aria-pressed", String(on));
    if (on) {
      this.fresh = 0;
      this.list.toEnd();
    }
    this.say();
  }

  moved(atEnd) {
    if (atEnd !== this.following) this.follow(atEnd);
  }

  // Address bar -----------------------------------------------------------------------------------------------

  addressedLine() {
    const line = Number(new URLSearchParams(location.hash.slice(1)).get("L"));
    return line > 0 ? line - 1 : null;
  }

  fromAddress() {
    const stream = this.addressed();
    if (stream && stream.id !== this.stream?.id) this.choose(stream, { keepLine: true });
    else if (this.addressedLine() !== null) this.jump(this.addressedLine());
  }

  toAddress(number) {
    if (!this.stream) return;
    const line = number === null ? "" : `&L=${number + 1}`;
    history.replaceState(history.state, "", `#log=${this.stream.id}${line}`);
    if (number !== null) this.list.mark(number);
  }

  jump(number) {
    this.follow(false);
    this.list.mark(number);
    this.list.toLine(number);
  }

  // Search ----------------------------------------------------------------------------------------------------

  async search(backwards) {
    const query = this.part("query").value;
    this.list.highlight(query);
    if (!query || !this.stream) return this.say();
    const stream = this.stream;
    const start = this.hit >= 0 ? this.hit + (backwards ? -1 : 1) : backwards ? this.store.total - 1 : this.list.firstVisible();
    this.part("found").textContent = "Searching…";
    const wrapped = backwards ? this.store.total - 1 : 0;
    try {
      let hit = await this.nextHit(stream, query, start, backwards);
      const again = hit === null && start !== wrapped;
      if (again) hit = await this.nextHit(stream, query, wrapped, backwards);
      if (stream.id !== this.stream?.id || query !== this.part("query").value) return undefined;
      this.hit = hit ?? -1;
      if (hit === null) this.part("found").textContent = "Not found";
      else {
        this.part("found").textContent = `Line ${count.format(hit + 1)}${again ? (backwards ? ", from the end" : ", from the start") : ""}`;
        this.jump(hit);
      }
    } catch (error) {
      this.part("found").textContent = `Search failed: ${error.message}`;
    }
    return undefined;
  }

  /** The nearest hit at or after `from` (or before it); the server looks through a part at a time. */
  async nextHit(stream, query, from, backwards) {
    let position = from;
    while (position !== null && position !== undefined && position >= 0 && position < this.store.total) {
      const parameters = new URLSearchParams({ q: query, from: String(position), backwards: backwards ? "1" : "0" });
      const answer = await getJson(`${this.base}${stream.id}/search?${parameters}`);
      if (answer.hits.length) return backwards ? Math.max(...answer.hits) : Math.min(...answer.hits);
      if (answer.next === position) break;
      position = answer.next;
    }
    return null;
  }

  // Tool bar and status ---------------------------------------------------------------------------------------

  bindTools() {
    const on = (name, event, act) => this.part(name).addEventListener(event, act);
    on("pod", "change", (event) => this.chosen(event.target.value, this.stream?.container));
    on("container", "change", (event) => this.chosen(this.stream?.pod, event.target.value));
    on("restart", "change", (event) => {
      this.choose(this.streams.find((stream) => String(stream.id) === event.target.value));
      this.toAddress(null);
    });
    on("follow", "click", () => this.follow(!this.following));
    on("jump", "click", () => this.follow(true));
    on("next", "click", () => this.search(false));
    on("previous", "click", () => this.search(true));
    on("query", "input", () => {
      this.hit = -1;
      this.part("found").textContent = "";
      this.list.highlight(this.part("query").value);
    });
    on("query", "keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        this.search(event.shiftKey);
      } else if (event.key === "Escape") {
        event.target.value = "";
        event.target.dispatchEvent(new Event("input"));
        this.part("scroll").focus();
      }
    });
    on("expand", "click", () => this.expand(!this.root.classList.contains("logview-full")));
    this.root.addEventListener("keydown", (event) => event.key === "Escape" && !event.defaultPrevented && event.target !== this.part("query") && this.expand(false));
    for (const name of ["wrap", "stamps"]) this.bindToggle(name);
  }

  bindToggle(name) {
    const key = `berth.log.${name}`;
    const set = (on) => {
      this.part(name).setAttribute("aria-pressed", String(on));
      this.root.classList.toggle(`logview-${name}`, on);
      this.list.relayout(name === "wrap" ? on : undefined);
    };
    let on = false;
    try {
      on = localStorage.getItem(key) === "1";
    } catch { /* private mode */ }
    set(on);
    this.part(name).addEventListener("click", () => {
      on = !on;
      set(on);
      if (this.following) this.list.toEnd();
      try {
        localStorage.setItem(key, on ? "1" : "0");
      } catch { /* private mode */ }
    });
  }

  expand(on) {
    this.root.classList.toggle("logview-full", on);
    document.documentElement.classList.toggle("has-full-log", on);
    this.part("expand").setAttribute("aria-pressed", String(on));
    this.list.relayout();
    if (this.following) this.list.toEnd();
    if (on) this.part("scroll").focus(); // so that Escape leads out again
  }

  status(tone, text) {
    const line = this.part("status");
    line.dataset.tone = tone;
    const words = line.querySelector("[data-part=status-text]");
    if (words.textContent !== text) words.textContent = text;
  }

  empty() {
    this.list.show(null);
    this.status("idle", "Nothing has run yet. Output appears here within a second of being written.");
    this.part("overlay").hidden = false;
    this.part("overlay-text").textContent = "No output yet";
  }

  say() {
    const { stream } = this;
    if (!stream) return;
    const total = this.store.total;
    this.part("lines").textContent = `${count.format(total)} ${total === 1 ? "line" : "lines"}`;
    this.part("jump").hidden = this.following || total === 0;
    this.part("jump-text").textContent = this.fresh ? `${count.format(this.fresh)} new` : "Latest";
    this.part("overlay").hidden = total > 0;
    if (!total) this.part("overlay-text").textContent = stream.note || stream.waiting || (stream.complete ? "This container wrote nothing" : "No output yet");
    this.part("note").hidden = !stream.note || !total;
    this.part("note").textContent = stream.note ?? "";
    this.status(...this.stateWords());
  }

  stateWords() {
    const { stream } = this;
    const gaps = stream.gaps ? ` · ${stream.gaps} ${stream.gaps === 1 ? "gap" : "gaps"}` : "";
    if (stream.complete) return [!stream.cancelled && /exit (?!0\b)|fail|evict|error|oom|remov/i.test(`${stream.state} ${stream.note}`) ? "bad" : "done", `Ended${stream.state ? `: ${stream.state}` : ""}${gaps}`];
    if (stream.waiting) return ["waiting", `Waiting: ${stream.waiting}`];
    if (this.tailState === "reconnecting") return ["waiting", "Reconnecting…"];
    if (this.tailState === "signed-out") return ["bad", "You are signed out. Sign in again to go on reading."];
    if (this.tailState === "connecting") return ["waiting", "Connecting…"];
    return ["live", `${this.following ? "Following" : "Paused, still recording"}${gaps}`];
  }
}

/** RW-011: a failed init container first, else the result container of the first worker, in its newest run. */
function preferred(streams) {
  const failed = streams.filter((stream) => stream.kind === "init" && stream.complete && /exit (?!0\b)/.test(stream.state ?? ""));
  const started = streams.some((stream) => stream.kind === "main" && (stream.lines > 0 || stream.complete));
  if (failed.length && !started) return newest(failed);
  const rank = (stream) => stream.rank ?? 0;
  const mains = streams.filter((stream) => stream.kind === "main");
  const lowest = Math.min(...mains.map(rank));
  // A replaced worker has the same rank: its newest pod is the last one listed.
  const first = mains.filter((stream) => rank(stream) === lowest);
  const pod = first.at(-1)?.pod;
  return newest(first.filter((stream) => stream.pod === pod)) ?? newest(streams);
}

function newest(streams) {
  return streams.reduce((best, stream) => (!best || stream.restart >= best.restart ? stream : best), undefined);
}

/** Options of a select; untouched when nothing changed, so that an open menu stays open. */
function fill(select, items, describe, chosen) {
  const wanted = items.map(describe);
  const present = [...select.options].map((option) => [option.value, option.textContent]);
  if (JSON.stringify(wanted) !== JSON.stringify(present)) {
    select.replaceChildren(...wanted.map(([value, text]) => new Option(text, value)));
  }
  if (chosen !== undefined) select.value = chosen;
  select.closest("label").hidden = wanted.length < 2;
}

async function getJson(address) {
  const answer = await fetch(address, { headers: { Accept: "application/json" }, signal: AbortSignal.timeout(30000) });
  if (!answer.ok) throw new Error(answer.status === 403 || answer.status === 401 ? "not allowed" : `answer ${answer.status}`);
  return answer.json();
}

for (const root of document.querySelectorAll("[data-logview]")) new LogView(root);
