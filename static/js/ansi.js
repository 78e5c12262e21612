/**
 * Turns one raw log line into coloured spans of plain text. Used by logview.js.
 *
 * A log line is hostile input: nothing in it may become an element, a link, a title or a style. The result
 * is therefore data (text and colour class names out of a fixed set), and the caller writes the text with
 * textContent only. Sequences other than colour vanish: cursor moves, erasing, window titles, hyperlinks.
 */

/** Characters of one line that are drawn; the download has the rest. */
export const MAX_CHARS = 65536;

// CSI (ESC [ or U+009B), OSC/DCS/SOS/PM/APC strings up to BEL or ST (or the end of the line), other escapes,
// and the remaining control characters except tab. A lone ESC at the end of a line is one of them.
const CONTROL =
  /(?:\x1b\[|\x9b)([0-?]*)[ -/]*([@-~]?)|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)?|\x1b[ -/]*[0-~]?|[\x00-\x08\x0a-\x1f\x7f-\x9f]/g;

const BASIC = [[0, 0, 0], [205, 49, 49], [13, 160, 80], [190, 150, 0], [36, 114, 200], [188, 63, 188], [17, 150, 180], [190, 190, 190],
  [102, 102, 102], [241, 76, 76], [35, 209, 139], [230, 220, 60], [59, 142, 234], [214, 112, 214], [41, 184, 219], [255, 255, 255]];

/**
 * Parse a line (without its line feed) into `[{text, classes}]`, in reading order.
 *
 * A bare carriage return replaces what stood on the line so far, as a terminal would show a progress bar;
 * one that nothing follows (the CR of a CR LF) changes nothing.
 */
export function parseLine(raw) {
  let spans = [];
  let pen = plainPen();
  const parts = raw.replace(/\r+$/, "").split("\r");
  // Redrawn thousands of times, only the last drawings can still matter; colour is reset by most of them.
  for (const part of parts.length > 64 ? parts.slice(-64) : parts) {
    const drawn = parsePart(part, pen);
    pen = drawn.pen;
    if (drawn.erases || drawn.spans.length) spans = drawn.spans;
  }
  return spans;
}

/** The same line as plain text: for searching, copying and tests. */
export function plainText(raw) {
  return parseLine(raw).map((span) => span.text).join("");
}

function parsePart(part, pen) {
  const spans = [];
  let erases = false;
  let position = 0;
  let room = MAX_CHARS;
  const put = (text) => {
    if (!text || room <= 0) return;
    const shown = text.length > room ? text.slice(0, room) + " … shortened; download the log for all of it" : text;
    room -= text.length;
    spans.push({ text: shown, classes: penClasses(pen) });
  };
  for (const match of part.matchAll(CONTROL)) {
    put(part.slice(position, match.index));
    position = match.index + match[0].length;
    if (match[2] === "m") pen = nextPen(pen, match[1]);
    else if (match[2] === "K" || match[2] === "J") erases = true;
    else if (match[0] === "\b") dropLast(spans);
  }
  put(part.slice(position));
  return { spans: joined(spans), pen, erases };
}

function dropLast(spans) {
  const last = spans.at(-1);
  if (!last) return;
  last.text = last.text.slice(0, -1);
  if (!last.text) spans.pop();
}

function joined(spans) {
  const out = [];
  for (const span of spans) {
    const last = out.at(-1);
    if (last && last.classes === span.classes) last.text += span.text;
    else out.push(span);
  }
  return out;
}

function plainPen() {
  return { fg: -1, bg: -1, bold: false, dim: false, italic: false, underline: false, inverse: false };
}

function penClasses(pen) {
  const names = [];
  const [fg, bg] = pen.inverse ? [pen.bg, pen.fg] : [pen.fg, pen.bg];
  if (pen.inverse && pen.fg < 0 && pen.bg < 0) names.push("a-inv");
  if (fg >= 0) names.push(`a-f${fg}`);
  if (bg >= 0) names.push(`a-b${bg}`);
  if (pen.bold) names.push("a-bold");
  if (pen.dim) names.push("a-dim");
  if (pen.italic) names.push("a-it");
  if (pen.underline) names.push("a-ul");
  return names.join(" ");
}

/** Select Graphic Rendition (ECMA-48 8.3.117): the subset that terminals agree on. */
function nextPen(pen, parameters) {
  if (/[<=>?]/.test(parameters)) return pen;
  const codes = parameters.split(/[;:]/).map((code) => Number(code || 0));
  let next = { ...pen };
  for (let i = 0; i < codes.length; i += 1) {
    const code = codes[i];
    if (code === 0) next = plainPen();
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underline = true;
    else if (code === 7) next.inverse = true;
    else if (code === 22) next.bold = next.dim = false;
    else if (code === 23) next.italic = false;
    else if (code === 24) next.underline = false;
    else if (code === 27) next.inverse = false;
    else if (code >= 30 && code <= 37) next.fg = code - 30;
    else if (code === 39) next.fg = -1;
    else if (code >= 40 && code <= 47) next.bg = code - 40;
    else if (code === 49) next.bg = -1;
    else if (code >= 90 && code <= 97) next.fg = code - 82;
    else if (code >= 100 && code <= 107) next.bg = code - 92;
    else if (code === 38 || code === 48) {
      const [colour, used] = extendedColour(codes, i + 1);
      if (colour >= 0) next[code === 38 ? "fg" : "bg"] = colour;
      i += used;
    }
  }
  return next;
}

/** A 256-colour or true-colour value as the nearest of the sixteen classes, and how many codes it took. */
function extendedColour(codes, at) {
  if (codes[at] === 5) {
    const index = codes[at + 1] ?? -1;
    if (index < 0 || index > 255) return [-1, 2];
    if (index < 16) return [index, 2];
    if (index >= 232) return [nearest(Array(3).fill((index - 232) * 10 + 8)), 2];
    const level = (value) => (value ? value * 40 + 55 : 0);
    const cube = index - 16;
    return [nearest([level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6)]), 2];
  }
  if (codes[at] === 2) return [nearest(codes.slice(at + 1, at + 4)), 4];
  return [-1, 0];
}

function nearest(rgb) {
  if (rgb.length < 3 || rgb.some((part) => !(part >= 0 && part <= 255))) return -1;
  let best = -1;
  let least = Infinity;
  BASIC.forEach((basic, index) => {
    const distance = basic.reduce((sum, part, channel) => sum + (part - rgb[channel]) ** 2, 0);
    if (distance < least) [best, least] = [index, distance];
  });
  return best;
}
