// Spans by name: which ones, how many, how long, and the next of them.

import { firstFrom, spanStart } from "./timeline-rows.js";

// Spans whose name contains `text`, whatever its case; null for an empty text.
export function searchNames(model, text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return null;
  return searchResult(model, Uint8Array.from(model.names, (name) => (name.toLowerCase().includes(wanted) ? 1 : 0)));
}

// Spans of one family.
export function searchFamily(model, family) {
  return searchResult(model, Uint8Array.from(model.familyOf, (one) => (one === family ? 1 : 0)));
}

function searchResult(model, names) {
  const rows = new Map();
  let count = 0;
  let time = 0;
  for (const lane of model.lanes) {
    const parts = lane.rows.map((row) => [row, foundIn(row, names)]).filter(([, found]) => found.length);
    for (const [row, found] of parts) {
      rows.set(row, found);
      count += found.length;
    }
    time += foundTime(parts);
  }
  return { names, rows, count, time };
}

// The time that found spans of one lane cover: one inside of another counts once.
function foundTime(parts) {
  const all = parts.flatMap(([row, found]) => Array.from(found, (i) => [row.starts[i], row.starts[i] + row.durations[i]]));
  if (parts.length > 1) all.sort(([one], [other]) => one - other);
  let time = 0;
  let end = -1;
  for (const [from, to] of all) {
    time += Math.max(0, to - Math.max(from, end));
    end = Math.max(end, to);
  }
  return time;
}

// The number of `span` among the found ones in order of time, from 1; 0 where it is none of them.
export function foundNumber(model, found, span) {
  const place = model.rows.indexOf(span?.row);
  if (!span || !found.names[span.row.names[span.index]]) return 0;
  let number = 1;
  for (const [row, indices] of found.rows) {
    number += firstAt(row, indices, spanStart(span), model.rows.indexOf(row) < place);
  }
  return number;
}

function foundIn(row, names) {
  let number = 0;
  for (let i = 0; i < row.count; i++) number += names[row.names[i]];
  const found = new Uint32Array(number);
  for (let i = 0, at = 0; at < number; i++) if (names[row.names[i]]) found[at++] = i;
  return found;
}

// The found span after (or before) `current` in order of time, from the other end where there is none; without
// `current`, the first one from `time` on.
export function nextFound(model, found, current, time, isForward) {
  const order = (span) => [spanStart(span), model.rows.indexOf(span.row)];
  const here = current ? order(current) : [time, isForward ? -1 : model.rows.length];
  let best = null;
  let first = null;
  for (const [row, indices] of found.rows) {
    const number = model.rows.indexOf(row);
    const candidate = neighbour(row, indices, number, here, isForward);
    const end = { row, index: isForward ? indices[0] : indices.at(-1) };
    if (candidate && (!best || isBefore(order(candidate), order(best)) === isForward)) best = candidate;
    if (!first || isBefore(order(end), order(first)) === isForward) first = end;
  }
  return best ?? first;
}

function neighbour(row, indices, number, [time, place], isForward) {
  const starts = { length: indices.length };
  const at = firstAt(row, indices, time, (isForward && number <= place) || (!isForward && number < place));
  const index = isForward ? at : at - 1;
  return index >= 0 && index < starts.length ? { row, index: indices[index] } : null;
}

// The first found span that begins at `time` or later; strictly later where spans at `time` come before that place.
function firstAt(row, indices, time, isAfter) {
  let low = 0;
  let high = indices.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const start = row.starts[indices[middle]];
    if (isAfter ? start > time : start >= time) high = middle;
    else low = middle + 1;
  }
  return low;
}

function isBefore([time, place], [otherTime, otherPlace]) {
  return time < otherTime || (time === otherTime && place < otherPlace);
}

// The span before or after `span` in its row; null at an end of it.
export function neighbourInRow(span, by) {
  const index = span.index + by;
  return index >= 0 && index < span.row.count ? { row: span.row, index } : null;
}

// The span of `row` that is around `time`, or the nearest to it.
export function nearestInRow(row, time) {
  if (!row.count) return null;
  const after = firstFrom(row.starts, time, row.count);
  if (after === 0) return { row, index: 0 };
  const before = after - 1;
  const isInside = row.starts[before] + row.durations[before] > time || after === row.count;
  const gap = time - (row.starts[before] + row.durations[before]);
  return { row, index: isInside || gap < row.starts[after] - time ? before : after };
}
