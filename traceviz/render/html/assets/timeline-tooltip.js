// What is under the pointer, in a box beside it.

import { count, duration, percent } from "./format.js";
import { colorSwatch, timelineElement } from "./timeline-dom.js";
import { spanEnd, spanStart } from "./timeline-rows.js";
import { clockOf, familyText, figureText, laneText } from "./timeline-texts.js";

const AWAY = 14;

// What the tooltip says of `under`: a span, a cell of a level, or a curve at a time.
export function tooltipContent(model, under, colors) {
  if (under.span) return spanContent(model, under.span, colors);
  if (under.cell) return cellContent(model, under.cell, colors);
  return curveContent(model, under);
}

function spanContent(model, span, colors) {
  const name = span.row.names[span.index];
  const length = spanEnd(span) - spanStart(span);
  const facts = [duration(length), `starts at ${clockOf(model, spanStart(span))}`, laneText(span.row.lane)];
  if (span.others > 0) facts.push(`and ${count(span.others)} more at this pixel: zoom in to tell them apart`);
  return [title(model, name, colors), ...lines(facts)];
}

function cellContent(model, { row, level, index }, colors) {
  const name = level.names[index];
  const share = percent(level.covered[index] / 255);
  return [
    title(model, name, colors),
    ...lines([
      `takes most of ${duration(level.width)}, of which ${share} is covered`,
      laneText(row.lane),
      "single events of this stretch are not in the page",
    ]),
  ];
}

function title(model, name, colors) {
  const family = timelineElement("span", { class: "tv-timeline-family" }, familyText(model, name));
  const head = timelineElement("p", { class: "tv-timeline-what" }, colorSwatch(colors[model.familyOf[name]]), family);
  return timelineElement("div", {}, head, timelineElement("p", { class: "tv-timeline-full" }, model.names[name]));
}

function lines(facts) {
  return facts.map((fact) => timelineElement("p", {}, fact));
}

function curveContent(model, { curve, index, time }) {
  const value = `${curve.label}: ${figureText(curve.values[index], curve.unit)}`;
  const head = timelineElement("p", { class: "tv-timeline-full" }, value);
  return [head, ...lines([`at ${clockOf(model, time)}`, curve.group])];
}

// Beside the pointer, inside of the box around the drawing.
export function placeTooltip(tooltip, box, x, y) {
  const left = x + AWAY + tooltip.offsetWidth > box.width ? x - AWAY - tooltip.offsetWidth : x + AWAY;
  const top = y + AWAY + tooltip.offsetHeight > box.height ? y - AWAY - tooltip.offsetHeight : y + AWAY;
  tooltip.style.left = `${Math.max(0, left)}px`;
  tooltip.style.top = `${Math.max(-tooltip.offsetHeight, top)}px`;
}
