// The pixels of a row: one colour for each, that of the name which takes most of the pixel, more opaque the more of the
// pixel is covered. What is there is never nothing: even a nanosecond among hours has half of its colour.

import { firstEndingAfter, firstFrom } from "./timeline-rows.js";

const LEAST_OPAQUE = 128;
const WIDE = 4;
const SEPARATOR = 0x66;
const LABEL_WIDTHS = 24;
export const STRIPED_PIXELS = 4;

// Fill `out` with the pixels of `grid`; the spans that are wide enough for a text are appended to `labels`.
export function fillStrip(model, row, grid, paint, out, labels) {
  const level = coarsestLevel(row, grid.perPixel);
  if (level) {
    cellsInto(level, grid, paint, out);
    longSpansInto(row, level, grid, paint, labels);
  } else if (row.isWhole) {
    spansInto(row, grid, paint, out, labels);
  } else {
    wideCellsInto(row.levels[0], grid, paint, out);
    for (const detail of model.details) clearDetail(detail, grid, out);
    spansInto(row, grid, paint, out, labels);
  }
}

function coarsestLevel(row, perPixel) {
  return row.levels.findLast((level) => level.width <= perPixel);
}

// Where every event is there, gaps between them are gaps, whatever a cell around them says.
function clearDetail(detail, grid, out) {
  const first = Math.max(0, Math.floor(detail.from / grid.perPixel) - grid.origin);
  const last = Math.min(out.length, Math.ceil(detail.to / grid.perPixel) - grid.origin);
  if (first < last) out.fill(0, first, last);
}

function spansInto(row, grid, paint, out, labels) {
  const { starts, durations, names, count } = row;
  const { origin, perPixel } = grid;
  const last = out.length;
  const end = (origin + last) * perPixel;
  paint.bin.begin(paint, out);
  for (let i = firstEndingAfter(row, origin * perPixel); i < count && starts[i] < end; i++) {
    const left = starts[i] / perPixel - origin;
    const right = left + durations[i] / perPixel;
    spanInto(Math.max(0, left), Math.min(last, right), names[i], left >= 0, paint, out);
    if (right - left >= paint.labelPixels) labels.push(row, i);
  }
  paint.bin.flush();
}

function spanInto(left, right, name, hasBegin, paint, out) {
  const begin = Math.floor(left);
  const end = Math.floor(right);
  if (begin >= end) {
    paint.bin.add(begin, name, right - left);
    return;
  }
  paint.bin.add(begin, name, begin + 1 - left);
  if (end > begin + 1) out.fill(paint.pixel(name, 255), begin + 1, end);
  if (hasBegin && end - begin >= WIDE) paint.bin.separate(begin, name);
  if (right > end) paint.bin.add(end, name, right - end);
}

// Cells are not wider than pixels here. A pixel is as covered as its cells are on average, also the empty ones: else
// pixels with one cell more than their neighbours would make a pattern.
function cellsInto(level, grid, paint, out) {
  const { cells, names, covered, count, width } = level;
  const scale = width / grid.perPixel;
  const begin = firstFrom(cells, Math.ceil(grid.origin / scale), count);
  let pixel = -1;
  let share = 0;
  paint.bin.begin(paint, out);
  for (let i = begin; i < count; i++) {
    const at = Math.floor(cells[i] * scale) - grid.origin;
    if (at >= out.length) break;
    if (at !== pixel) {
      pixel = at;
      share = 1 / (255 * cellsStarting(grid.origin + at, scale));
    }
    if (at >= 0) paint.bin.add(at, names[i], covered[i] * share);
  }
  paint.bin.flush();
}

function cellsStarting(pixel, scale) {
  return Math.max(1, Math.ceil((pixel + 1) / scale) - Math.ceil(pixel / scale));
}

// Cells wider than pixels, where the budget left no events: striped as soon as their edges can be seen, so that they do
// not look like events.
function wideCellsInto(level, grid, paint, out) {
  const scale = level.width / grid.perPixel;
  for (let i = firstFrom(level.cells, Math.floor(grid.origin / scale), level.count); i < level.count; i++) {
    const left = Math.floor(level.cells[i] * scale) - grid.origin;
    if (left >= out.length) break;
    const right = Math.min(out.length, Math.max(left + 1, Math.floor((level.cells[i] + 1) * scale) - grid.origin));
    const color = paint.pixel(level.names[i], level.covered[i]);
    const dim = paint.pixel(level.names[i], 0, SEPARATOR);
    for (let x = Math.max(0, left); x < right; x++) {
      out[x] = scale >= STRIPED_PIXELS && ((x + grid.origin) & 3) === 0 ? dim : color;
    }
  }
}

// Spans of many cells, found once for each level: they have texts also where levels are drawn.
function longSpansInto(row, level, grid, paint, labels) {
  level.long ??= longSpans(row, level.width * LABEL_WIDTHS);
  const least = paint.labelPixels * grid.perPixel;
  const end = (grid.origin + grid.pixels) * grid.perPixel;
  const begin = grid.origin * grid.perPixel;
  let low = 0;
  let high = level.long.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const i = level.long[middle];
    if (row.starts[i] + row.durations[i] > begin) high = middle;
    else low = middle + 1;
  }
  for (; low < level.long.length && row.starts[level.long[low]] < end; low++) {
    if (row.durations[level.long[low]] >= least) labels.push(row, level.long[low]);
  }
}

function longSpans(row, least) {
  const found = [];
  for (let i = 0; i < row.count; i++) if (row.durations[i] >= least) found.push(i);
  return Uint32Array.from(found);
}

// Spans that a search found, over what covers their pixels: found spans are always seen.
export function matchesInto(row, found, grid, paint, out) {
  const { starts, durations, names } = row;
  const { origin, perPixel } = grid;
  const end = (origin + out.length) * perPixel;
  let next = foundFrom(row, found, origin * perPixel);
  while (next < found.length && starts[found[next]] < end) {
    const i = found[next];
    const left = Math.max(0, Math.floor(starts[i] / perPixel) - origin);
    const right = Math.min(out.length, Math.max(left + 1, Math.floor((starts[i] + durations[i]) / perPixel) - origin));
    out.fill(paint.pixel(names[i], 255), left, right);
    next = Math.max(next + 1, right === left + 1 ? foundFrom(row, found, (origin + right) * perPixel) : 0);
  }
}

function foundFrom(row, found, time) {
  let low = 0;
  let high = found.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const i = found[middle];
    if (row.starts[i] >= time || row.starts[i] + row.durations[i] > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

// What covers one pixel, by name; spans come in order of time, so that one pixel is open at a time.
export class PixelBin {
  constructor(names) {
    this.weights = new Float64Array(names);
    this.touched = new Uint32Array(names);
  }

  begin(paint, out) {
    this.paint = paint;
    this.out = out;
    this.pixel = -1;
    this.number = 0;
  }

  add(pixel, name, share) {
    if (pixel !== this.pixel) {
      this.flush();
      this.pixel = pixel;
      this.sum = 0;
      this.best = name;
      this.most = -1;
    }
    if (this.weights[name] === 0) this.touched[this.number++] = name;
    // So little that it counts for nothing, and yet more than 0, which says that the name was not seen.
    const weight = (this.weights[name] += share + 1e-12);
    this.sum += share;
    if (weight > this.most) {
      this.most = weight;
      this.best = name;
    }
  }

  flush() {
    if (this.pixel >= 0 && this.pixel < this.out.length) {
      this.out[this.pixel] = this.paint.pixel(this.best, Math.min(255, Math.round(this.sum * 255)));
    }
    for (let i = 0; i < this.number; i++) this.weights[this.touched[i]] = 0;
    this.number = 0;
    this.pixel = -1;
  }

  // A pale first pixel tells a wide span from its neighbour of the same colour.
  separate(pixel, name) {
    this.flush();
    this.out[pixel] = this.paint.pixel(name, 255, SEPARATOR);
  }
}

// How opaque a pixel is of which 1 to 255 of 255 parts are covered.
export function opacity(covered) {
  return covered >= 250 ? 255 : LEAST_OPAQUE + Math.round(((255 - LEAST_OPAQUE) * covered) / 255);
}
