// Where spans of a row are: rows are in order of time and their spans do not overlap, so that their ends ascend too.

const ALMOST_ALL = 0.9;

// The first span that ends after `time`, or begins at it or later.
export function firstEndingAfter(row, time) {
  let low = 0;
  let high = row.count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (row.starts[middle] >= time || row.starts[middle] + row.durations[middle] > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

// The first position of ascending `values` that holds `value` or more.
export function firstFrom(values, value, count = values.length) {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] >= value) high = middle;
    else low = middle + 1;
  }
  return low;
}

// The span that takes most of [from, to], and how many lie there; null where none does.
export function longestSpan(row, from, to) {
  let best = null;
  let most = -1;
  let number = 0;
  for (let i = firstEndingAfter(row, from); i < row.count && row.starts[i] <= to; i++, number++) {
    const inside = Math.min(to, row.starts[i] + row.durations[i]) - Math.max(from, row.starts[i]);
    if (inside > most) [best, most] = [i, inside];
  }
  return best === null ? null : { row, index: best, others: number - 1 };
}

// The cell of the finest level around `time`; null where nothing is.
export function cellAt(row, time) {
  const level = row.levels[0];
  if (!level) return null;
  const cell = Math.floor(time / level.width);
  const index = firstFrom(level.cells, cell, level.count);
  return index < level.count && level.cells[index] === cell ? { row, level, index } : null;
}

export function spanStart(span) {
  return span.row.starts[span.index];
}

export function spanEnd(span) {
  return span.row.starts[span.index] + span.row.durations[span.index];
}

export function spanName(model, span) {
  return model.names[span.row.names[span.index]];
}

// From the first to the last steady step of any rank; null without steps, or where they take almost all of the time.
export function steadyTime(model) {
  const family = model.families.findIndex(({ key }) => key === "step");
  let [from, to] = [Infinity, -Infinity];
  for (const row of model.lanes.filter((lane) => lane.kind === "steps").flatMap((lane) => lane.rows)) {
    for (let i = 0; i < row.count; i++) {
      if (model.familyOf[row.names[i]] !== family) continue;
      from = Math.min(from, row.starts[i]);
      to = Math.max(to, row.starts[i] + row.durations[i]);
    }
  }
  return to > from && to - from < ALMOST_ALL * model.span ? { from, to } : null;
}

// Where every event of [from, to] is in the page: everywhere, or inside of one stretch of detail.
export function hasEvents(model, row, from, to) {
  return row.isWhole || model.details.some((detail) => detail.from <= from && to <= detail.to);
}

// The span of the event of that number; few ask, and one pass over a million numbers takes a millisecond.
export function spanOfEvent(model, event) {
  for (const row of model.rows) {
    const index = row.events().indexOf(event);
    if (index >= 0) return { row, index };
  }
  return null;
}
