// What changes with the pointer: outline of spans, the selected window, arrows of the selection, values of curves. It
// has a canvas of its own, so that to move a pointer draws no lanes again.

import { duration } from "./format.js";
import { curveArea, curveHeight } from "./timeline-draw.js";
import { AXIS_HEIGHT, stripOf } from "./timeline-layout.js";
import { spanEnd, spanStart } from "./timeline-rows.js";
import { pixelAt, timeAt } from "./timeline-scale.js";
import { figureText } from "./timeline-texts.js";
import { nearestValue } from "./timeline-under.js";

const LEAST_OUTLINE = 3;

// `marks` is {hover, selected, window, drag, pointer, links}; the scene is that of the drawing below.
export function drawOverlay(context, scene, marks) {
  const { view, height, ratio, paint } = scene;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, view.width, height);
  if (marks.window) drawWindow(context, scene, marks.window);
  if (marks.pointer !== null) drawPointer(context, scene, marks.pointer);
  context.save();
  context.beginPath();
  context.rect(0, AXIS_HEIGHT, view.width, height - AXIS_HEIGHT);
  context.clip();
  if (marks.pointer !== null) drawValues(context, scene, marks.pointer);
  for (const link of marks.links) drawLink(context, scene, link);
  if (marks.hover) drawOutline(context, scene, marks.hover, paint.theme.text, 1);
  if (marks.selected) drawOutline(context, scene, marks.selected, paint.theme.text, 2);
  context.restore();
}

function drawWindow(context, { view, height, paint }, { from, to }) {
  const left = Math.round(pixelAt(view, from));
  const right = Math.max(left + 1, Math.round(pixelAt(view, to)));
  context.fillStyle = paint.theme.background;
  context.globalAlpha = 0.55;
  context.fillRect(0, AXIS_HEIGHT, left, height);
  context.fillRect(right, AXIS_HEIGHT, view.width - right, height);
  context.globalAlpha = 1;
  context.fillStyle = paint.theme.accent;
  context.fillRect(left - 1, 0, 1, height);
  context.fillRect(right, 0, 1, height);
  context.fillRect(left, AXIS_HEIGHT - 3, right - left, 3);
  drawWindowLength(context, paint, duration(Math.round(to - from)), left, right, view.width);
}

function drawWindowLength(context, paint, text, left, right, width) {
  context.font = `600 11px ${paint.theme.font}`;
  context.textBaseline = "middle";
  const room = context.measureText(text).width + 10;
  const x = Math.max(2, Math.min(width - room - 2, (left + right - room) / 2));
  if (right < 0 || left > width) return;
  context.fillStyle = paint.theme.accent;
  context.fillRect(x, 4, room, 17);
  context.fillStyle = paint.theme.background;
  context.fillText(text, x + 5, 13);
}

function drawPointer(context, { height, paint }, x) {
  context.fillStyle = paint.theme.quiet;
  context.globalAlpha = 0.5;
  context.fillRect(Math.round(x), AXIS_HEIGHT, 1, height);
  context.globalAlpha = 1;
}

// The value of each curve at the pointer, on a ground of its own so that it can be read.
function drawValues(context, scene, x) {
  const { view, paint, layout, scroll } = scene;
  context.font = `600 11px ${paint.theme.font}`;
  context.textBaseline = "middle";
  for (const item of layout.items) {
    const index = item.kind === "curve" ? nearestValue(item.curve, timeAt(view, x)) : null;
    if (index === null || Number.isNaN(item.curve.values[index])) continue;
    const area = curveArea(item, scroll);
    const y = curveHeight(item.curve, item.curve.values[index], area);
    drawValue(context, paint.theme, figureText(item.curve.values[index], item.curve.unit), {
      x: pixelAt(view, item.curve.times[index]), y, middle: area.top + area.height / 2, width: view.width,
    });
  }
}

function drawValue(context, theme, text, { x, y, middle, width }) {
  context.fillStyle = theme.accent;
  context.beginPath();
  context.arc(x, y, 3, 0, 2 * Math.PI);
  context.fill();
  const room = context.measureText(text).width + 8;
  const left = x + 8 + room > width ? x - 8 - room : x + 8;
  context.fillStyle = theme.background;
  context.globalAlpha = 0.85;
  context.fillRect(left, middle - 8, room, 16);
  context.globalAlpha = 1;
  context.fillStyle = theme.text;
  context.fillText(text, left + 4, middle + 0.5);
}

function drawOutline(context, scene, span, color, width) {
  const box = spanBox(scene, span);
  if (!box) return;
  context.strokeStyle = color;
  context.lineWidth = width;
  context.strokeRect(box.left - width / 2, box.top - width / 2, box.right - box.left + width, box.height + width);
}

// Where a span lies on the canvas; null where its lane is folded away.
export function spanBox({ view, layout, scroll }, span) {
  const strip = stripOf(layout, span.row);
  if (!strip) return null;
  const left = Math.max(-10, pixelAt(view, spanStart(span)));
  const right = Math.min(view.width + 10, Math.max(left + LEAST_OUTLINE, pixelAt(view, spanEnd(span))));
  return { left, right, top: strip.y - scroll, height: strip.height };
}

// A curve from where the call begins to where its work does, or between collectives of ranks.
function drawLink(context, scene, { kind, source, target }) {
  const to = linkPoint(scene, target);
  const from = to && linkPoint(scene, source, to.y);
  if (!from || !to) return;
  const { theme } = scene.paint;
  const bend = Math.max(18, Math.min(120, Math.abs(to.x - from.x) / 2));
  context.lineWidth = 1.5;
  context.strokeStyle = theme.accent;
  context.setLineDash(kind === "collective" ? [5, 3] : []);
  context.beginPath();
  context.moveTo(from.x, from.y);
  context.bezierCurveTo(from.x + bend, from.y, to.x - bend, to.y, to.x, to.y);
  context.stroke();
  context.setLineDash([]);
  drawHead(context, theme.accent, to);
  drawOutline(context, scene, source, theme.accent, 1.5);
  drawOutline(context, scene, target, theme.accent, 1.5);
}

// The begin of a span: at its middle, or at the edge that is nearer to height `towards`, so that its text stays free.
function linkPoint({ view, layout, scroll }, span, towards = null) {
  const strip = stripOf(layout, span.row);
  if (!strip) return null;
  const middle = strip.y - scroll + strip.height / 2;
  const away = towards === null || towards === middle ? 0 : (Math.sign(towards - middle) * strip.height) / 2;
  return { x: pixelAt(view, spanStart(span)), y: middle + away };
}

function drawHead(context, color, { x, y }) {
  context.fillStyle = color;
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x - 7, y - 4);
  context.lineTo(x - 7, y + 4);
  context.fill();
}
