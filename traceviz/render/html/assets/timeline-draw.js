// Draws lanes, curves and the axis of time. Strips of pixels are computed as numbers, put on a canvas of one line for
// each strip, and stretched from there to their height: a frame costs what the screen has of pixels, not the trace of
// events.

import { firstFrom } from "./timeline-rows.js";
import { AXIS_HEIGHT } from "./timeline-layout.js";
import { fillStrip, matchesInto } from "./timeline-strips.js";
import { perPixel, pixelAt, pixelGrid, timeTicks } from "./timeline-scale.js";

const TEXT_SIZE = 11;
const TEXT_ROOM = 5;
const LEAST_LETTERS = 3;
const ROOMS = 4096;
const MOST_FITS = 20_000;

export class TimelineDrawing {
  constructor(canvas, model) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.model = model;
    this.strips = document.createElement("canvas");
    this.stripContext = this.strips.getContext("2d", { willReadFrequently: true });
    this.fits = new Map();
    this.image = null;
  }

  // `scene` is {view, layout, paint, found, scroll, height, ratio}: all that the picture depends on.
  draw(scene) {
    const { view, paint, ratio, height } = scene;
    const context = this.context;
    const visible = scene.layout.items.filter((item) => isVisible(item, scene));
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = paint.theme.background;
    context.fillRect(0, 0, view.width, height);
    const axis = timeTicks(view, this.model.start);
    this.drawBands(visible, scene);
    this.drawGrid(axis, scene);
    const labels = this.drawStrips(visible.flatMap((item) => item.strips), scene);
    for (const item of visible) if (item.kind === "curve") this.drawCurve(item, scene);
    this.drawLabels(labels, scene);
    this.drawAxis(axis, scene);
  }

  drawBands(items, { view, paint, scroll }) {
    const context = this.context;
    for (const item of items) {
      if (item.kind === "group") {
        context.fillStyle = paint.theme.panel;
        context.fillRect(0, item.y - scroll, view.width, item.height);
      }
      context.fillStyle = paint.theme.line;
      context.globalAlpha = item.kind === "group" ? 1 : 0.45;
      context.fillRect(0, item.y - scroll + item.height - 1, view.width, 1);
      context.globalAlpha = 1;
    }
  }

  drawGrid({ ticks }, { view, paint, height }) {
    this.context.fillStyle = paint.theme.line;
    this.context.globalAlpha = 0.4;
    for (const { time } of ticks) this.context.fillRect(Math.round(pixelAt(view, time)), AXIS_HEIGHT, 1, height);
    this.context.globalAlpha = 1;
  }

  // Draws the strips; returns what is wide enough for a text as [strip, row, index, row, index, ...] lists.
  drawStrips(strips, scene) {
    const seen = strips.filter((strip) => isVisible(strip, scene));
    const grid = pixelGrid(scene.view, scene.ratio);
    if (!seen.length) return [];
    const pixels = this.stripPixels(grid.pixels, seen.length);
    const labels = seen.map((strip, line) => {
      const out = pixels.subarray(line * grid.pixels, (line + 1) * grid.pixels);
      return { strip, spans: this.fillOne(strip, grid, scene, out) };
    });
    this.stripContext.putImageData(this.image, 0, 0, 0, 0, grid.pixels, seen.length);
    this.context.imageSmoothingEnabled = false;
    seen.forEach((strip, line) => {
      const { y, height } = strip;
      this.context.drawImage(this.strips, 0, line, grid.pixels, 1, 0, y - scene.scroll, scene.view.width, height);
    });
    return labels;
  }

  // Memory for so many lines of pixels, the same as long as the size is.
  stripPixels(width, lines) {
    if (this.strips.width !== width || this.strips.height < lines) {
      this.strips.width = width;
      this.strips.height = lines + 16;
      this.image = this.stripContext.createImageData(width, lines + 16);
      this.numbers = new Uint32Array(this.image.data.buffer);
      this.spare = new Uint32Array(width);
    }
    return this.numbers;
  }

  fillOne(strip, grid, { paint, found }, out) {
    const labels = [];
    out.fill(0);
    strip.rows.forEach((row, position) => {
      const target = position ? this.spare : out;
      if (position) target.fill(0);
      const inner = position ? [] : labels;
      fillStrip(this.model, row, grid, paint, target, inner);
      if (found?.rows.has(row)) matchesInto(row, found.rows.get(row), grid, paint, target);
      if (position) fillHoles(out, target);
    });
    return labels;
  }

  drawLabels(labels, { view, paint, scroll }) {
    const context = this.context;
    context.font = `${TEXT_SIZE}px ${paint.theme.font}`;
    context.textBaseline = "middle";
    const scale = perPixel(view);
    for (const { strip, spans } of labels) {
      const middle = strip.y - scroll + strip.height / 2 + 0.5;
      for (let i = 0; i < spans.length; i += 2) this.drawLabel(spans[i], spans[i + 1], middle, { view, paint, scale });
    }
    context.globalAlpha = 1;
  }

  drawLabel(row, index, middle, { view, paint, scale }) {
    const left = Math.max(0, (row.starts[index] - view.from) / scale);
    const right = Math.min(view.width, (row.starts[index] + row.durations[index] - view.from) / scale);
    const name = row.names[index];
    const text = this.fitted(name, right - left - TEXT_ROOM - 2);
    if (!text) return;
    this.context.fillStyle = paint.inks[name];
    this.context.globalAlpha = paint.found && !paint.found[name] ? 0.45 : 1;
    this.context.fillText(text, left + TEXT_ROOM, middle);
  }

  // As much of a name as fits. What was measured is kept, since the same names are drawn frame after frame.
  fitted(name, room) {
    const key = name * ROOMS + Math.min(ROOMS - 1, Math.floor(room));
    if (!this.fits.has(key)) {
      if (this.fits.size > MOST_FITS) this.fits.clear();
      this.fits.set(key, this.measured(shownName(this.model.names[name]), room));
    }
    return this.fits.get(key);
  }

  measured(text, room) {
    const width = (one) => this.context.measureText(one).width;
    const short = text.slice(0, Math.ceil(room));
    if (short.length === text.length && width(text) <= room) return text;
    let letters = Math.floor((room / Math.max(1, width(short))) * short.length);
    while (letters > 0 && width(`${short.slice(0, letters)}…`) > room) letters -= 1;
    return letters >= LEAST_LETTERS ? `${short.slice(0, letters)}…` : "";
  }

  drawCurve(item, { view, paint, scroll }) {
    const area = curveArea(item, scroll);
    const points = curvePoints(item.curve, view, area);
    const context = this.context;
    context.fillStyle = paint.theme.series(0);
    context.strokeStyle = paint.theme.series(0);
    context.lineWidth = 1.25;
    for (const part of points) {
      context.beginPath();
      context.moveTo(part[0], area.top + area.height);
      for (let i = 0; i < part.length; i += 2) context.lineTo(part[i], part[i + 1]);
      context.lineTo(part.at(-2), area.top + area.height);
      context.globalAlpha = 0.2;
      context.fill();
      context.globalAlpha = 1;
      context.beginPath();
      for (let i = 0; i < part.length; i += 2) context.lineTo(part[i], part[i + 1]);
      context.stroke();
    }
  }

  drawAxis({ ticks, base }, { view, paint }) {
    const context = this.context;
    context.fillStyle = paint.theme.background;
    context.fillRect(0, 0, view.width, AXIS_HEIGHT);
    context.fillStyle = paint.theme.line;
    context.fillRect(0, AXIS_HEIGHT - 1, view.width, 1);
    context.font = `${TEXT_SIZE}px ${paint.theme.font}`;
    context.textBaseline = "middle";
    const edge = base ? context.measureText(base).width + 14 : 0;
    for (const { time, text } of ticks) {
      const x = Math.round(pixelAt(view, time));
      context.fillStyle = paint.theme.line;
      context.fillRect(x, AXIS_HEIGHT - 7, 1, 6);
      context.fillStyle = paint.theme.quiet;
      if (x + 4 >= edge && x + 4 + context.measureText(text).width < view.width) context.fillText(text, x + 4, 13);
    }
    context.fillStyle = paint.theme.text;
    if (base) context.fillText(base, 4, 13);
  }
}

function isVisible({ y, height }, scene) {
  return y + height > scene.scroll + AXIS_HEIGHT && y < scene.scroll + scene.height;
}

function fillHoles(out, inner) {
  for (let x = 0; x < out.length; x++) if (out[x] === 0) out[x] = inner[x];
}

// What a signature begins with tells nothing of the kernel.
export function shownName(name) {
  return name.startsWith("void ") ? name.slice(5) : name;
}

// Points of a curve in view as [x, y, x, y, ...] for each stretch that was measured; of many points in one pixel the
// highest, since peaks are what one looks for.
function curvePoints(curve, view, area) {
  const parts = [];
  let part = null;
  const first = Math.max(0, firstFrom(curve.times, view.from) - 1);
  for (let i = first; i < curve.count; i++) {
    if (Number.isNaN(curve.values[i])) part = null;
    else {
      if (!part) parts.push((part = []));
      addPoint(part, pixelAt(view, curve.times[i]), curveHeight(curve, curve.values[i], area));
    }
    if (curve.times[i] > view.to) break;
  }
  return parts;
}

function addPoint(part, x, y) {
  const last = part.length - 2;
  if (last >= 2 && x - part[last] < 1) part[last + 1] = Math.min(part[last + 1], y);
  else part.push(x, y);
}

// Where a curve is drawn, from top to bottom.
export function curveArea(item, scroll) {
  return { top: item.y - scroll + item.top, height: item.height - item.top - 5 };
}

// A share of the whole stays one of 100 %; other figures fill their height with their largest value.
export function curveHeight(curve, value, { top, height }) {
  const most = curve.unit === "ratio" ? Math.max(1, curve.largest) : curve.largest || 1;
  return top + height * (1 - Math.max(0, Math.min(1, value / most)));
}
