/**
 * A window of log lines in memory: pages of 500 lines fetched by number, the least recently used dropped.
 *
 * Used by logview.js (one store per stream) and read by loglist.js while it draws. Lines count from 0.
 */

export const PAGE = 500;
const KEPT_PAGES = 10; // about 5,000 lines
const AT_ONCE = 3;

export class LogStore {
  constructor(address, total, { onLoaded, onGrown }) {
    this.address = address;
    this.total = total;
    this.onLoaded = onLoaded;
    this.onGrown = onGrown;
    this.pages = new Map(); // page number -> lines, least recently used first
    this.loading = new Set();
    this.failed = new Map(); // page number -> not before
  }

  /** The line, or undefined while it is being fetched. */
  line(number) {
    const index = Math.floor(number / PAGE);
    const page = this.pages.get(index);
    const line = page?.[number - index * PAGE];
    if (!line) this.fetch(index);
    else this.touch(index, page);
    return line;
  }

  setTotal(total) {
    const added = Math.max(0, total - this.total);
    this.total = Math.max(this.total, total);
    return added;
  }

  /** Lines as the live stream brings them; one sent again replaces what was there. */
  append(first, lines) {
    lines.forEach((line, offset) => {
      const number = line.n ?? first + offset;
      const index = Math.floor(number / PAGE);
      const at = number - index * PAGE;
      let page = this.pages.get(index);
      // A page whose start is not here is left to `fetch`, which brings it whole.
      if (!page && at !== 0) return;
      if (!page) this.pages.set(index, (page = []));
      if (at <= page.length) page[at] = line;
    });
    this.trim();
    this.onGrown(first + lines.length);
  }

  touch(index, page) {
    this.pages.delete(index);
    this.pages.set(index, page);
  }

  trim() {
    for (const index of this.pages.keys()) {
      if (this.pages.size <= KEPT_PAGES) break;
      this.pages.delete(index);
    }
  }

  async fetch(index) {
    if (this.loading.has(index) || this.loading.size >= AT_ONCE || (this.failed.get(index) ?? 0) > Date.now()) return;
    this.loading.add(index);
    try {
      const answer = await fetch(`${this.address}?from=${index * PAGE}&count=${PAGE}`, { signal: AbortSignal.timeout(30000) });
      if (!answer.ok) throw new Error(`answer ${answer.status}`);
      const { first, lines, total } = await answer.json();
      const known = this.pages.get(index) ?? [];
      const page = lines.slice(index * PAGE - first);
      this.pages.set(index, page.length >= known.length ? page : known);
      this.failed.delete(index);
      this.trim();
      if (total > this.total) this.onGrown(total);
    } catch {
      this.failed.set(index, Date.now() + 2000);
      setTimeout(() => this.onLoaded(), 2100);
    } finally {
      this.loading.delete(index);
    }
    this.onLoaded();
  }
}
