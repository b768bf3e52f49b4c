// Colours from the theme of the page: each name has that of its family, a little lighter or darker by name, so that
// neighbours of one family differ.

import { firstEndingAfter, firstFrom } from "./timeline-rows.js";
import { opacity, PixelBin } from "./timeline-strips.js";

const TIMELINE_SERIES = 12;
const SHADES = [0, 0.12, -0.1];
const FADED = 0.22;

// The colours of the page as texts: background, text, quiet, line, panel, accent.
export function themeColors(element) {
  const style = getComputedStyle(element);
  const one = (key, other) => style.getPropertyValue(`--tv-${key}`).trim() || other;
  return {
    background: one("background", "#ffffff"), text: one("text", "#1b1f24"), quiet: one("quiet", "#57606a"),
    line: one("line", "#d0d7de"), panel: one("panel", "#f6f8fa"), accent: one("accent", "#0b62c4"),
    font: style.fontFamily,
    family: (key) => one(key.replaceAll("_", "-"), ""),
    series: (position) => one(`series-${position % TIMELINE_SERIES}`, "#5b6b80"),
  };
}

// For each family of the model its colour; families without one of their own take those of the series, in order.
export function familyColors(model, theme) {
  const own = model.families.map(({ key }) => theme.family(key));
  const series = Array.from({ length: TIMELINE_SERIES }, (_, position) => theme.series(position));
  let unknown = 0;
  return own.map((color) => color || series[unknown++ % series.length]);
}

const LANE_TYPES = [
  ["Run", new Set(["steps", "phases"])],
  ["Where the time went", new Set(["classes"])],
  ["Devices", new Set(["device", "device_ops", "collectives"])],
  ["Program", new Set(["ranges", "ops", "stacks"])],
  ["Calls", new Set(["api", "os"])],
];
const LEGEND_CELLS = 300;

// Families that the drawn lanes have in view, as [title, families] by type of lane. Where a row has levels, their cells
// stand for its spans.
export function familiesInView(model, layout, { from, to }) {
  const drawn = new Set(layout.items.flatMap((item) => item.strips.flatMap((strip) => strip.rows)));
  return LANE_TYPES.map(([title, kinds]) => {
    const found = new Set();
    for (const row of drawn) {
      if (kinds.has(row.lane.kind)) for (const name of namesInView(row, from, to)) found.add(model.familyOf[name]);
    }
    return [title, [...found].sort((one, other) => one - other)];
  }).filter(([, families]) => families.length);
}

function namesInView(row, from, to) {
  const level = row.levels.findLast(({ width }) => width * LEGEND_CELLS <= to - from);
  if (level) {
    const first = firstFrom(level.cells, Math.floor(from / level.width), level.count);
    return new Set(level.names.subarray(first, firstFrom(level.cells, Math.ceil(to / level.width), level.count)));
  }
  return new Set(row.names.subarray(firstEndingAfter(row, from), firstFrom(row.starts, to, row.count)));
}

// What strips and texts are painted with; `found` has 1 for each name that stays coloured, null where all do.
export function timelinePaint(model, theme, found, ratio) {
  const families = familyColors(model, theme).map(colorParts);
  const alone = loneNames(model);
  const colors = model.names.map((name, position) => {
    const parts = families[model.familyOf[position]];
    return alone[model.familyOf[position]] ? parts : shaded(parts, name);
  });
  const rgb = Uint32Array.from(colors, ([red, green, blue]) => (blue << 16) | (green << 8) | red);
  const opaque = Uint8Array.from({ length: 256 }, (_, covered) => opacity(covered));
  const inks = colors.map((parts) => inkOn(parts, theme));
  const pixel = (name, covered, alpha = opaque[covered]) => {
    const shown = found && !found[name] ? alpha * FADED : alpha;
    return ((shown << 24) | rgb[name]) >>> 0;
  };
  return { pixel, inks, theme, found, labelPixels: 26 * ratio, bin: new PixelBin(model.names.length) };
}

// Families of one name, such as classes of time: they have exactly the colour that the report has for them.
function loneNames(model) {
  const names = new Uint32Array(model.families.length);
  for (const family of model.familyOf) names[family] += 1;
  return names.map((number) => (number <= 1 ? 1 : 0));
}

function shaded(parts, name) {
  const shade = SHADES[nameHash(name) % SHADES.length];
  return parts.map((part) => Math.round(shade > 0 ? part + (255 - part) * shade : part * (1 + shade)));
}

function nameHash(name) {
  let hash = 7;
  for (let i = 0; i < Math.min(name.length, 200); i++) hash = (hash * 31 + name.charCodeAt(i)) >>> 0;
  return hash >>> 3;
}

// Red, green and blue of "#rrggbb" or of any other colour that CSS has.
function colorParts(color) {
  const hex = /^#([0-9a-f]{6})$/i.exec(color);
  if (hex) return [0, 2, 4].map((at) => parseInt(hex[1].slice(at, at + 2), 16));
  const context = document.createElement("canvas").getContext("2d");
  context.fillStyle = color;
  context.fillRect(0, 0, 1, 1);
  return [...context.getImageData(0, 0, 1, 1).data.slice(0, 3)];
}

function inkOn(parts, theme) {
  const light = luminance(parts);
  const [one, other] = ["#ffffff", "#14171c"].map((ink) => [ink, luminance(colorParts(ink))]);
  const contrast = ([, ink]) => (Math.max(light, ink) + 0.05) / (Math.min(light, ink) + 0.05);
  // White on a colour of a light page reads calmer as long as it can be read at all.
  if (luminance(colorParts(theme.background)) > 0.5 && contrast(one) >= 3.2) return one[0];
  return contrast(one) >= contrast(other) ? one[0] : other[0];
}

function luminance(parts) {
  const [red, green, blue] = parts.map((part) => {
    const value = part / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
