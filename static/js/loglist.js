/**
 * Draws the visible part of a log in a scrolling box of at most 8 million pixels. Used by logview.js.
 *
 * Browsers cap the height of an element (Firefox at about 17.9 million pixels), and wrapped lines have
 * heights nobody knows before drawing them. So the position is an anchor: a line and how many pixels of it are
 * above the upper edge. Small movements of the scroll bar move the anchor by the same number of pixels,
 * large ones by proportion; when movement rests, the scroll bar is put where the anchor is.
 */

import { parseLine } from "./ansi.js";

const SPACER_LIMIT = 8_000_000;
const EXTRA = 30; // lines drawn beyond each edge
const REST_MS = 140;
const END_ZONE = 8; // pixels from the lower end that still count as the end

export class LogList {
  constructor(box, { onMoved, onLine }) {
    this.box = box;
    this.onMoved = onMoved;
    this.spacer = box.querySelector("[data-part=spacer]");
    this.rows = box.querySelector("[data-part=rows]");
    this.store = null;
    this.wraps = false;
    this.anchor = { line: 0, offset: 0 };
    this.known = 0; // scrollTop as we last saw or set it
    this.needle = "";
    this.marked = -1;
    this.frame = 0;
    this.rowHeight = 20;
    this.drawn = new Map(); // line number -> {element, line, key}
    box.addEventListener("scroll", () => this.scrolled(), { passive: true });
    // Told at once: the browser's own animation would chase an end that moves while lines arrive.
    box.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
      if (event.key !== "End" && event.key !== "Home") return;
      event.preventDefault();
      if (event.key === "Home") this.toLine(0);
      onMoved(event.key === "End");
    });
    this.rows.addEventListener("click", (event) => {
      const number = event.target.closest("[data-line-number]");
      if (number) onLine(Number(number.dataset.lineNumber));
    });
    new ResizeObserver(() => this.relayout()).observe(box);
  }

  show(store) {
    this.store = store;
    this.marked = -1;
    this.anchor = { line: 0, offset: 0 };
    this.clear();
    this.relayout();
  }

  relayout(wraps = this.wraps) {
    const changed = wraps !== this.wraps;
    this.wraps = wraps;
    if (changed) this.clear();
    this.rowHeight = this.measureRow();
    this.settle();
    this.draw();
  }

  clear() {
    this.rows.replaceChildren();
    this.drawn.clear();
  }

  measureRow() {
    const height = parseFloat(getComputedStyle(this.rows).lineHeight);
    return height > 0 ? height : 20;
  }

  get total() {
    return this.store?.total ?? 0;
  }

  get height() {
    return this.box.clientHeight;
  }

  /** Lines that fit, so the last line at which the view can start. */
  get lastStart() {
    return Math.max(0, this.total - this.height / this.rowHeight);
  }

  get range() {
    return Math.max(0, this.box.scrollHeight - this.height);
  }

  get isExact() {
    return !this.wraps && this.total * this.rowHeight <= SPACER_LIMIT;
  }

  firstVisible() {
    return this.anchor.line;
  }

  toLine(number) {
    this.sizeSpacer();
    const start = Math.max(0, Math.min(number, this.total - 1) - Math.floor(this.height / this.rowHeight / 3));
    this.anchor = { line: start, offset: 0 };
    this.settle();
    this.draw();
  }

  toEnd() {
    this.sizeSpacer();
    this.anchor = { line: Math.max(0, this.total - 1), offset: 0, end: true };
    this.known = this.box.scrollTop = this.range;
    this.draw();
  }

  mark(number) {
    this.marked = number;
    for (const [line, entry] of this.drawn) entry.element.classList.toggle("log-marked", line === number);
  }

  highlight(needle) {
    const folded = needle.toLowerCase();
    if (folded === this.needle) return;
    this.needle = folded;
    this.draw();
  }

  scrolled() {
    const top = this.box.scrollTop;
    const moved = top - this.known;
    if (Math.abs(moved) < 1) return;
    this.known = top;
    const share = this.range ? top / this.range : 0;
    if (top <= 0) this.anchor = { line: 0, offset: 0 };
    else if (top >= this.range - END_ZONE && (moved > 0 || this.anchor.end)) this.anchor = { line: this.total - 1, offset: 0, end: true };
    else if (this.isExact) this.anchor = { line: Math.floor(top / this.rowHeight), offset: top % this.rowHeight };
    else if (Math.abs(moved) > this.height * 2) this.anchor = { line: Math.floor(share * this.lastStart), offset: 0 };
    else this.anchor = { ...this.start(), moved };
    this.onMoved(Boolean(this.anchor.end));
    this.draw();
    clearTimeout(this.rest);
    this.rest = setTimeout(() => this.settle(), REST_MS);
  }

  /** Where the view starts now, also when the anchor was given as "the end". */
  start() {
    return this.anchor.end ? (this.shown ?? { line: 0, offset: 0 }) : { line: this.anchor.line, offset: this.anchor.offset };
  }

  /** Put the scroll bar where the anchor is. Nothing moves on the screen. */
  settle() {
    this.sizeSpacer();
    if (this.anchor.end) this.known = this.box.scrollTop = this.range;
    else {
      const lines = this.anchor.line + this.anchor.offset / this.rowHeight;
      const wanted = this.isExact ? lines * this.rowHeight : this.lastStart ? (Math.min(lines, this.lastStart) / this.lastStart) * this.range : 0;
      // The two ends mean "first line" and "last line"; only reaching them by scrolling may say that.
      const inside = this.isExact || lines <= 0 ? wanted : Math.max(2, Math.min(wanted, this.range - 2));
      if (Math.abs(inside - this.box.scrollTop) >= 1) this.box.scrollTop = inside;
      this.known = this.box.scrollTop;
    }
    this.place();
  }

  sizeSpacer() {
    const height = `${Math.min(SPACER_LIMIT, Math.max(this.total * this.rowHeight, 0))}px`;
    if (this.spacer.style.height !== height) this.spacer.style.height = height;
  }

  draw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.render();
    });
  }

  render() {
    this.sizeSpacer();
    if (this.anchor.end && Math.abs(this.box.scrollTop - this.range) >= 1) this.known = this.box.scrollTop = this.range;
    const fitting = Math.ceil(this.height / this.rowHeight);
    const around = this.anchor.end ? this.total - fitting : this.anchor.line;
    const first = Math.max(0, around - EXTRA);
    const last = Math.min(this.total, around + fitting + EXTRA);
    this.fillRows(first, last);
    if (this.anchor.moved) this.walk(this.anchor.moved);
    this.place();
  }

  fillRows(first, last) {
    for (const [number, entry] of this.drawn) {
      if (number < first || number >= last) {
        entry.element.remove();
        this.drawn.delete(number);
      }
    }
    let previous = null;
    for (let number = first; number < last; number += 1) {
      const line = this.store.line(number);
      let entry = this.drawn.get(number);
      if (!entry || entry.line !== line || entry.needle !== this.needle) {
        const element = this.row(number, line);
        if (entry) entry.element.replaceWith(element);
        entry = { element, line, needle: this.needle };
        this.drawn.set(number, entry);
      }
      if (entry.element.previousElementSibling !== previous || entry.element.parentNode !== this.rows) {
        if (previous) previous.after(entry.element);
        else this.rows.prepend(entry.element);
      }
      previous = entry.element;
    }
  }

  /** Move the anchor by pixels over the rows as they were drawn. */
  walk(pixels) {
    let { line, offset } = this.anchor;
    offset += pixels;
    const heightOf = (number) => this.drawn.get(number)?.element.offsetHeight ?? this.rowHeight;
    while (offset < 0 && line > 0) offset += heightOf((line -= 1));
    while (line < this.total - 1 && offset >= heightOf(line)) {
      offset -= heightOf(line);
      line += 1;
    }
    this.anchor = { line, offset: Math.max(0, offset) };
    const missing = line < this.firstDrawn() || line + Math.ceil(this.height / this.rowHeight) > this.lastDrawn();
    if (missing) this.render();
  }

  firstDrawn() {
    return this.drawn.size ? Math.min(...this.drawn.keys()) : 0;
  }

  lastDrawn() {
    return this.drawn.size ? Math.max(...this.drawn.keys()) + 1 : 0;
  }

  /** Shift the drawn block so that the anchor stands at the upper edge (or the last line at the lower). */
  place() {
    if (!this.drawn.size) return;
    let top;
    if (this.anchor.end) {
      const overhang = this.rows.offsetHeight - this.height;
      const firstDrawn = this.firstDrawn();
      top = overhang > 0 || firstDrawn > 0 ? this.box.scrollTop - overhang : 0;
      this.shown = this.lineAt(Math.max(0, overhang));
    } else {
      const element = this.drawn.get(this.anchor.line)?.element;
      top = this.box.scrollTop - (element ? element.offsetTop : 0) - this.anchor.offset;
    }
    this.rows.style.transform = `translateY(${Math.round(top)}px)`;
  }

  lineAt(pixels) {
    for (const [number, entry] of [...this.drawn].sort((a, b) => a[0] - b[0])) {
      const above = pixels - entry.element.offsetTop;
      if (above < entry.element.offsetHeight) return { line: number, offset: Math.max(0, above) };
    }
    return { line: Math.max(0, this.total - 1), offset: 0 };
  }

  // One row: number, time, text. Text enters the page through textContent and in no other way (RW-045). -----

  row(number, line) {
    const row = make("div", "log-row");
    const label = make("button", "log-number");
    label.type = "button";
    label.tabIndex = -1;
    label.dataset.lineNumber = String(number);
    label.textContent = String(number + 1);
    label.title = "Link to this line";
    const text = make("span", "log-text");
    row.append(label);
    if (!line) {
      row.classList.add("log-pending");
      text.textContent = "…";
      row.append(text);
      return row;
    }
    const stamp = make("span", "log-stamp");
    stamp.textContent = shortStamp(line.t);
    stamp.title = line.t ?? "";
    row.append(stamp, text);
    if (line.g) {
      row.classList.add("log-gap");
      const note = make("span", "log-gap-note");
      note.textContent = line.g;
      text.append(note);
    }
    for (const span of parseLine(line.s ?? "")) this.putSpan(text, span);
    row.classList.toggle("log-marked", number === this.marked);
    return row;
  }

  putSpan(parent, { text, classes }) {
    const folded = this.needle ? text.toLowerCase() : "";
    let position = 0;
    const put = (piece, css) => {
      if (!piece) return;
      if (!css) parent.append(piece);
      else {
        const element = make("span", css);
        element.textContent = piece;
        parent.append(element);
      }
    };
    // Folding may change the length of rare letters; then nothing is highlighted rather than the wrong part.
    while (this.needle && folded.length === text.length) {
      const found = folded.indexOf(this.needle, position);
      if (found < 0) break;
      put(text.slice(position, found), classes);
      put(text.slice(found, found + this.needle.length), `${classes} log-found`.trim());
      position = found + this.needle.length;
    }
    put(text.slice(position), classes);
  }
}

function make(tag, css) {
  const element = document.createElement(tag);
  element.className = css;
  return element;
}

/** Local time of day to the millisecond; the whole stamp is in the title. */
function shortStamp(stamp) {
  const moment = new Date(stamp ?? "");
  if (Number.isNaN(moment.getTime())) return "";
  const two = (value) => String(value).padStart(2, "0");
  return `${two(moment.getHours())}:${two(moment.getMinutes())}:${two(moment.getSeconds())}.${String(moment.getMilliseconds()).padStart(3, "0")}`;
}
