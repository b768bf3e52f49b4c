// Where lanes are: from top to bottom in CSS pixels, by group, some of them folded.

export const AXIS_HEIGHT = 28;
const GROUP_HEIGHT = 26;
const ROW_HEIGHT = 18;
const ROW_STEP = 19;
const LANE_ROOM = 5;
const CURVE_HEIGHT = 38;
const LABEL_LINE = 16;
const OPEN_ROWS = 12;
const OPEN_GROUPS_ROWS = 240;

// Groups with their lanes and curves, in the order in which they first occur.
export function laneGroups(model) {
  const groups = new Map();
  const group = (label) => {
    if (!groups.has(label)) groups.set(label, { label, lanes: [], curves: [] });
    return groups.get(label);
  };
  model.lanes.forEach((lane) => group(lane.group).lanes.push(lane));
  model.curves.forEach((curve) => group(curve.group).curves.push(curve));
  return [...groups.values()];
}

// What is folded at first: lanes of many rows, and groups behind so many rows that nobody would scroll to them.
export function firstFolds(groups) {
  const lanes = new Set(groups.flatMap((group) => group.lanes.filter((lane) => lane.rows.length > OPEN_ROWS)));
  let rows = 0;
  const closed = groups.filter((group, position) => {
    rows += group.lanes.reduce((sum, lane) => sum + (lanes.has(lane) ? 1 : lane.rows.length), 0);
    return position > 0 && rows > OPEN_GROUPS_ROWS;
  });
  return { lanes, groups: new Set(closed.map((group) => group.label)) };
}

// Items from top to bottom: {kind: "group" | "lane" | "curve", y, height, strips}; a strip is {rows, y, height}, where
// a strip of several rows shows of each pixel the outermost that has something.
export function laneLayout(groups, folds, narrow) {
  const items = [];
  let y = AXIS_HEIGHT;
  const add = (item) => {
    items.push({ ...item, y });
    y += item.height;
  };
  for (const group of groups) {
    const closed = folds.groups.has(group.label);
    add({ kind: "group", group, closed, height: GROUP_HEIGHT, strips: closed ? [closedStrip(group, y)] : [] });
    if (closed) continue;
    group.lanes.forEach((lane) => add(laneItem(lane, folds.lanes.has(lane), y, narrow)));
    group.curves.forEach((curve) => add(curveItem(curve, narrow)));
  }
  return { items, height: y };
}

function closedStrip(group, y) {
  const lane = group.lanes.find((one) => one.kind === "classes") ?? group.lanes[0];
  return { rows: lane?.rows ?? [], y: y + 4, height: ROW_HEIGHT };
}

function laneItem(lane, closed, y, narrow) {
  const top = y + 2 + (narrow ? LABEL_LINE : 0);
  const strips = closed
    ? [{ rows: lane.rows, y: top, height: ROW_HEIGHT }]
    : lane.rows.map((row, depth) => ({ rows: [row], y: top + depth * ROW_STEP, height: ROW_HEIGHT }));
  const rows = Math.max(1, strips.length);
  return { kind: "lane", lane, closed, strips, height: top - y + rows * ROW_STEP + LANE_ROOM - 2 };
}

function curveItem(curve, narrow) {
  const label = narrow ? LABEL_LINE : 0;
  return { kind: "curve", curve, strips: [], height: CURVE_HEIGHT + label, top: label + 4 };
}

// The item at height `y`, and its strip there, if any.
export function itemAt(layout, y) {
  const item = layout.items.find((one) => y >= one.y && y < one.y + one.height);
  const strip = item?.strips.find((one) => y >= one.y - 1 && y < one.y + one.height + 1);
  return { item, strip };
}

// The strip that shows `row`; null where its group is folded away.
export function stripOf(layout, row) {
  for (const item of layout.items) {
    const strip = item.strips.find((one) => one.rows.includes(row));
    if (strip) return strip;
  }
  return null;
}
