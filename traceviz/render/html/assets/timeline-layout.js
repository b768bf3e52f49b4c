// Where lanes are: from top to bottom in CSS pixels, by group, some of them folded.

export const AXIS_HEIGHT = 28;
const GROUP_HEIGHT = 26;
const ROW_HEIGHT = 18;
const ROW_STEP = 19;
const LANE_ROOM = 5;
const CURVE_HEIGHT = 38;
const LABEL_LINE = 16;
const OPEN_ROWS = 12;
const ALL_RANKS = "all ranks";
const PINNED_WORDS = { steps: "steps", classes: "time" };
const PINNED_KINDS = new Set(Object.keys(PINNED_WORDS));
const OPEN_GROUPS_ROWS = 240;

// Groups with their lanes and curves, in the order in which they first occur. Of several ranks, the steps and the
// classes of time stand together at the top, where ranks can be compared.
export function laneGroups(model) {
  const groups = new Map();
  const group = (label) => {
    if (!groups.has(label)) groups.set(label, { label, lanes: [], curves: [] });
    return groups.get(label);
  };
  const pinned = model.lanes.filter((lane) => PINNED_KINDS.has(lane.kind));
  const isShared = new Set(pinned.map((lane) => lane.group)).size > 1;
  if (isShared) groups.set(ALL_RANKS, { label: ALL_RANKS, lanes: pinned, curves: [], isShared });
  for (const lane of model.lanes) if (!isShared || !pinned.includes(lane)) group(lane.group).lanes.push(lane);
  model.curves.forEach((curve) => group(curve.group).curves.push(curve));
  return [...groups.values()];
}

// What is folded at first: lanes of many rows, and groups behind so many rows that nobody would scroll to them.
export function firstFolds(groups) {
  if (groups[0]?.isShared) {
    const many = groups.flatMap((group) => group.lanes.filter((lane) => lane.rows.length > OPEN_ROWS));
    return { lanes: new Set(many), groups: new Set(groups.slice(1).map((group) => group.label)) };
  }
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
    for (const lane of group.lanes) {
      const label = group.isShared ? `${lane.group} ${PINNED_WORDS[lane.kind]}` : lane.label;
      add({ ...laneItem(lane, folds.lanes.has(lane), y, narrow), label });
    }
    group.curves.forEach((curve) => add(curveItem(curve, narrow)));
  }
  return { items, height: y };
}

function closedStrip(group, y) {
  const first = (kind) => group.lanes.find((one) => one.kind === kind);
  const lane = first("classes") ?? first("device") ?? group.lanes[0];
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

// The group that has `lane`.
export function groupOf(groups, lane) {
  return groups.find((group) => group.lanes.includes(lane));
}

// The strip that shows `row`; null where its group is folded away.
export function stripOf(layout, row) {
  for (const item of layout.items) {
    const strip = item.strips.find((one) => one.rows.includes(row));
    if (strip) return strip;
  }
  return null;
}
