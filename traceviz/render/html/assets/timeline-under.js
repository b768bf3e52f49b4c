// What lies under a point of the drawing.

import { itemAt } from "./timeline-layout.js";
import { cellAt, firstFrom, hasEvents, longestSpan, spanEnd, spanStart } from "./timeline-rows.js";
import { perPixel, timeAt } from "./timeline-scale.js";

const NEAR_PIXELS = 1.5;
const PLAIN_PIXELS = 3;

// {span}, {cell} or {curve, index, time}; null where nothing is.
export function underPoint(model, scene, x, y) {
  const { item, strip } = itemAt(scene.layout, y + scene.scroll);
  const time = timeAt(scene.view, x);
  if (item?.kind === "curve") return underCurve(item.curve, time);
  for (const row of strip?.rows ?? []) {
    const found = underRow(model, row, time, perPixel(scene.view));
    if (found) return found;
  }
  return null;
}

function underRow(model, row, time, pixel) {
  const near = pixel * NEAR_PIXELS;
  if (!hasEvents(model, row, Math.max(0, time - near), Math.min(model.span, time + near))) {
    const cell = cellAt(row, time);
    return cell && { cell };
  }
  const exact = longestSpan(row, time, time);
  if (exact && spanEnd(exact) - spanStart(exact) > pixel * PLAIN_PIXELS) return { span: exact };
  const span = longestSpan(row, time - near, time + near);
  return span && { span };
}

function underCurve(curve, time) {
  const index = nearestValue(curve, time);
  return index === null ? null : { curve, index, time: curve.times[index] };
}

// Position of the value that was measured nearest to `time`; null where a curve has none.
export function nearestValue({ times, count }, time) {
  if (!count) return null;
  const after = firstFrom(times, time);
  const isBefore = after > 0 && (after === count || time - times[after - 1] < times[after] - time);
  return isBefore ? after - 1 : after;
}
