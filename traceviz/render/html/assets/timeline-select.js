// What a selection holds, in the words of the report: time by class of each rank, use of devices, kernels, calls,
// operators. Spans that reach over an edge of the window count with the part inside, so that times add up to it.

import { firstEndingAfter, firstFrom, hasEvents, spanEnd, spanOfEvent, spanStart } from "./timeline-rows.js";

const MOST_LINKS = 64;
const DEVICE_KINDS = new Set(["device"]);
const CALL_KINDS = new Set(["api"]);
const OPERATOR_KINDS = new Set(["ops"]);
const NO_OPERATORS = new Set(["step", "python", "range"]);

// The breakdown of [from, to]: all times in nanoseconds.
export function windowBreakdown(model, from, to) {
  const lanes = (kinds) => model.lanes.filter((lane) => kinds.has(lane.kind));
  return {
    from, to,
    classes: classTimes(model, lanes(new Set(["classes"])), from, to),
    devices: deviceUse(model, lanes(DEVICE_KINDS), from, to),
    kernels: namesIn(model, lanes(DEVICE_KINDS), from, to),
    calls: namesIn(model, lanes(CALL_KINDS), from, to),
    operators: operatorsIn(model, lanes(OPERATOR_KINDS), from, to),
  };
}

// Names of all classes that occur, the longest first, each with its time in every lane of classes.
function classTimes(model, lanes, from, to) {
  const sums = lanes.map((lane) => namesIn(model, [{ ...lane, rows: lane.rows.slice(0, 1) }], from, to));
  const names = new Map();
  sums.forEach((sum, position) => {
    for (const { name, time } of sum.names) {
      if (!names.has(name)) names.set(name, { name, times: lanes.map(() => 0), total: 0 });
      names.get(name).times[position] = time;
      names.get(name).total += time;
    }
  });
  const rows = [...names.values()].sort((one, other) => other.total - one.total);
  return { groups: lanes.map((lane) => lane.group), rows, isExact: sums.every((sum) => sum.isExact) };
}

// Time, number and family of each name in rows of `lanes`, the longest first; not exact where levels had to do.
function namesIn(model, lanes, from, to) {
  const times = new Float64Array(model.names.length);
  const counts = new Float64Array(model.names.length);
  let isExact = true;
  for (const row of lanes.flatMap((lane) => lane.rows)) {
    if (hasEvents(model, row, from, to)) addSpans(row, from, to, times, counts);
    else isExact = addCells(row, from, to, times, counts) && isExact;
  }
  const names = [];
  counts.forEach((count, name) => count && names.push({ name, time: times[name], count }));
  names.sort((one, other) => other.time - one.time || other.count - one.count);
  return { names, isExact, families: familiesOf(model, names) };
}

// Operators by name, with the time of those inside of them and (`own`) without, most of which comes first; steps,
// ranges and Python's functions, which share their lanes, are none. An operator within one of the same name counts once.
function operatorsIn(model, lanes, from, to) {
  const found = namesIn(model, lanes, from, to);
  const repeated = new Float64Array(model.names.length);
  const inside = new Float64Array(model.names.length);
  for (const { rows } of found.isExact ? lanes : []) {
    rows.forEach((row, depth) => addNested(row, rows.slice(0, depth), from, to, repeated, inside));
  }
  const names = found.names
    .filter(({ name }) => !NO_OPERATORS.has(model.families[model.familyOf[name]].key))
    .map(({ name, time, count }) => ({ name, count, time: time - repeated[name], own: time - inside[name] }))
    .sort((one, other) => other.own - one.own || other.count - one.count);
  return { ...found, names };
}

// Adds the time of spans of `row` to `inside` of the name around them, and to `repeated` where that or one further out
// is their own.
function addNested(row, outer, from, to, repeated, inside) {
  const { starts, durations, names, count } = row;
  const places = outer.map((one) => firstEndingAfter(one, from));
  for (let i = firstEndingAfter(row, from); i < count && starts[i] < to; i++) {
    const time = Math.min(to, starts[i] + durations[i]) - Math.max(from, starts[i]);
    const around = outer.map((one, depth) => nameAround(one, places, depth, starts[i]));
    if (around.includes(names[i])) repeated[names[i]] += time;
    if (around.length && around.at(-1) >= 0) inside[around.at(-1)] += time;
  }
}

// The name of the span of `row` that is around `time`, -1 where none is; `places` keeps how far each row was read.
function nameAround(row, places, depth, time) {
  let at = places[depth];
  while (at < row.count && row.starts[at] + row.durations[at] <= time) at += 1;
  places[depth] = at;
  return at < row.count && row.starts[at] <= time ? row.names[at] : -1;
}

function addSpans(row, from, to, times, counts) {
  const { starts, durations, names, count } = row;
  for (let i = firstEndingAfter(row, from); i < count && starts[i] < to; i++) {
    times[names[i]] += Math.min(to, starts[i] + durations[i]) - Math.max(from, starts[i]);
    counts[names[i]] += 1;
  }
}

// Times from cells: what is not the most of its cell counts as that. False where anything was there.
function addCells(row, from, to, times, counts) {
  const { cells, names, covered, width, count } = row.levels[0];
  const begin = firstFrom(cells, Math.floor(from / width), count);
  let i = begin;
  for (; i < count && cells[i] * width < to; i++) {
    const inside = Math.min(to, (cells[i] + 1) * width) - Math.max(from, cells[i] * width);
    times[names[i]] += (inside * covered[i]) / 255;
    counts[names[i]] += 1;
  }
  return i === begin;
}

function familiesOf(model, names) {
  const families = new Map();
  for (const { name, time, count } of names) {
    const family = model.familyOf[name];
    const sum = families.get(family) ?? { family, time: 0, count: 0 };
    families.set(family, { family, time: sum.time + time, count: sum.count + count });
  }
  return [...families.values()].sort((one, other) => other.time - one.time);
}

// For each device: how much of the window any of its streams works.
function deviceUse(model, lanes, from, to) {
  const devices = Map.groupBy(lanes, deviceName);
  return [...devices].map(([device, own]) => {
    const rows = own.flatMap((lane) => lane.rows);
    const isExact = rows.every((row) => hasEvents(model, row, from, to));
    return { device, isExact, busy: isExact ? unionTime(rows, from, to) : coveredTime(rows, from, to) };
  });
}

// "GPU 0" of a lane "GPU 0 stream 7"; where a label names no device, that of its group.
function deviceName({ label, group }) {
  const device = / stream .*$/.test(label) ? label.replace(/ stream .*$/, "") : "";
  return [device, group].filter(Boolean).join(" · ") || "device";
}

// Time that spans of any row cover: begins and ends in order, counted up and down.
function unionTime(rows, from, to) {
  const begins = [];
  const ends = [];
  for (const { starts, durations, count, ...row } of rows) {
    for (let i = firstEndingAfter({ starts, durations, count, ...row }, from); i < count && starts[i] < to; i++) {
      begins.push(Math.max(from, starts[i]));
      ends.push(Math.min(to, starts[i] + durations[i]));
    }
  }
  const [first, last] = [Float64Array.from(begins).sort(), Float64Array.from(ends).sort()];
  let busy = 0;
  for (let i = 0, opened = 0; i < first.length; i++) {
    // The i-th end closes a busy stretch where the next span begins after it.
    if (i + 1 === first.length || first[i + 1] > last[i]) {
      busy += last[i] - first[opened];
      opened = i + 1;
    }
  }
  return busy;
}

// From levels: of each cell as much as the row that covers most of it.
function coveredTime(rows, from, to) {
  const parts = new Map();
  let exact = 0;
  for (const row of rows) {
    if (!row.levels.length) exact += unionTime([row], from, to);
    else addCover(row.levels[0], from, to, parts);
  }
  return Math.min(to - from, exact + [...parts.values()].reduce((sum, part) => sum + part, 0));
}

function addCover({ cells, covered, width, count }, from, to, parts) {
  for (let i = firstFrom(cells, Math.floor(from / width), count); i < count && cells[i] * width < to; i++) {
    const begin = cells[i] * width;
    const inside = (Math.min(to, begin + width) - Math.max(from, begin)) * (covered[i] / 255);
    parts.set(begin, Math.max(parts.get(begin) ?? 0, inside));
  }
}

// Arrows from and to a span: the call that launched it, what it launched, the same collective on other ranks.
export function spanLinks(model, span) {
  const event = span.row.events()[span.index];
  return model.arrows.flatMap((arrows) => (arrows.kind === "launch" ? ownLinks : joinedLinks)(model, arrows, event));
}

function ownLinks(model, arrows, event) {
  return linksOf(model, arrows, linkPositions(arrows, event));
}

// A collective may be joined rank by rank in a row: all that hangs together belongs to it.
function joinedLinks(model, arrows, event) {
  const positions = new Set();
  const { sources, targets } = arrows.ends();
  const open = [event];
  const seen = new Set(open);
  while (open.length && positions.size < MOST_LINKS) {
    for (const position of linkPositions(arrows, open.pop())) {
      positions.add(position);
      const ends = [sources[position], targets[position]].filter((end) => !seen.has(end));
      ends.forEach((end) => seen.add(end));
      open.push(...ends);
    }
  }
  return linksOf(model, arrows, [...positions]);
}

function linkPositions(arrows, event) {
  const { sources, targets } = arrows.ends();
  const found = [];
  for (const ends of [sources, targets]) {
    let at = ends.indexOf(event);
    for (; at >= 0 && found.length < MOST_LINKS; at = ends.indexOf(event, at + 1)) found.push(at);
  }
  return found;
}

function linksOf(model, arrows, positions) {
  const { sources, targets } = arrows.ends();
  return positions
    .map((at) => ({
      kind: arrows.kind,
      source: spanOfEvent(model, sources[at]),
      target: spanOfEvent(model, targets[at]),
    }))
    .filter(({ source, target }) => source && target);
}

// The call that launched a span, and how long after the call's begin it started.
export function launchOf(links, span) {
  const link = links.find((one) => one.kind === "launch" && isSameSpan(one.target, span));
  return link ? { call: link.source, delay: spanStart(span) - spanStart(link.source) } : null;
}

// What a call launched: the spans, and the time that they take.
export function launchedBy(links, span) {
  const spans = links.filter((one) => one.kind === "launch" && isSameSpan(one.source, span)).map((one) => one.target);
  return { spans, time: spans.reduce((sum, one) => sum + spanEnd(one) - spanStart(one), 0) };
}

export function isSameSpan(one, other) {
  return Boolean(one && other && one.row === other.row && one.index === other.index);
}

// The first spans of each lane in [from, to], at most so many, in order of time.
export function spansIn(model, from, to, most) {
  const found = [];
  for (const row of model.rows) {
    let left = most;
    for (let i = firstEndingAfter(row, from); left && i < row.count && row.starts[i] < to; i++, left--) {
      found.push({ row, index: i });
    }
  }
  found.sort((one, other) => spanStart(one) - spanStart(other));
  return { spans: found.slice(0, most), isAll: found.length <= most };
}
