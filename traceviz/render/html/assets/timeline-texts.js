// Texts about spans: for the tooltip, the panel and for what a screen reader says.

import { bytes, count, duration, percent } from "./format.js";
import { spanEnd, spanName, spanStart } from "./timeline-rows.js";
import { clockTime } from "./timeline-scale.js";

// A figure of a curve in its unit.
export function figureText(value, unit) {
  if (Number.isNaN(value)) return "not measured";
  if (unit === "ratio") return percent(value);
  if (unit === "ns") return duration(value);
  if (unit === "bytes") return bytes(value);
  if (unit === "bytes/s") return `${bytes(value)}/s`;
  const text = Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(4)));
  return ["", "count", "number"].includes(unit) ? text : `${text} ${unit === "watt" ? "W" : unit}`;
}

// A duration with all its digits where three do not tell it: "1.23 ms (1,234,567 ns)".
export function exactDuration(nanoseconds) {
  return nanoseconds < 1000 ? duration(nanoseconds) : `${duration(nanoseconds)} (${count(nanoseconds)} ns)`;
}

export function laneText(lane) {
  return lane.group ? `${lane.label} · ${lane.group}` : lane.label;
}

export function familyText(model, name) {
  return model.families[model.familyOf[name]]?.label ?? "";
}

// One sentence for a screen reader.
export function spokenSpan(model, span) {
  const length = duration(spanEnd(span) - spanStart(span));
  const name = spanName(model, span).slice(0, 200);
  return `${name}, ${length}, ${laneText(span.row.lane)}, at ${clockTime(model.start + spanStart(span))}`;
}

// The options of the command that takes its figures from [from, to] only.
export function clockOf(model, time) {
  return clockTime(model.start + time);
}
