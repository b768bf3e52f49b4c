// The panel below the drawing: what is selected, as the report says it.

import { count, duration, percent } from "./format.js";
import { colorSwatch, timelineElement, timelineTable } from "./timeline-dom.js";
import { spanEnd, spanName, spanStart } from "./timeline-rows.js";
import { launchedBy, launchOf, spansIn, windowBreakdown } from "./timeline-select.js";
import { clockOf, exactDuration, familyText, laneText } from "./timeline-texts.js";

const MOST_NAMES = 12;
const MOST_SPANS = 100;
const SHARED_RANKS = 2;

// What is said of one span; `actions` has `select`, which a button for another span calls.
export function spanPanel(model, span, links, colors, actions) {
  const name = span.row.names[span.index];
  const head = timelineElement(
    "h3", { class: "tv-timeline-title" }, colorSwatch(colors[model.familyOf[name]]), spanName(model, span),
  );
  const facts = [
    ["Family", familyText(model, name)],
    ["Lane", laneText(span.row.lane)],
    ["Starts at", clockOf(model, spanStart(span))],
    ["Takes", exactDuration(spanEnd(span) - spanStart(span))],
    ...launchFacts(model, span, links, actions),
    ...collectiveFacts(model, span, links, actions),
  ];
  return [head, factList(facts)];
}

function launchFacts(model, span, links, actions) {
  const launch = launchOf(links, span);
  const launched = launchedBy(links, span);
  const facts = [];
  if (launch) {
    facts.push(["Launched by", spanButton(model, launch.call, actions)]);
    facts.push(["Launch to start", duration(launch.delay)]);
  }
  if (launched.spans.length === 1) facts.push(["Launched", spanButton(model, launched.spans[0], actions)]);
  if (launched.spans.length > 1) facts.push(["Launched", `${count(launched.spans.length)} spans`]);
  if (launched.spans.length) facts.push(["Device time of it", duration(launched.time)]);
  return facts;
}

// When a collective began and ended on each rank: who comes last is whom the others wait for.
function collectiveFacts(model, span, links, actions) {
  const joined = links.filter((link) => link.kind === "collective").flatMap((link) => [link.source, link.target]);
  const spans = [...new Map(joined.map((one) => [`${model.rows.indexOf(one.row)} ${one.index}`, one])).values()];
  if (!spans.length) return [];
  const last = spans.reduce((latest, one) => (spanStart(one) > spanStart(latest) ? one : latest));
  const spread = spanStart(last) - Math.min(...spans.map(spanStart));
  return [
    ["Joined", `${spans.length} ranks, starts ${duration(spread)} apart`],
    ["Last to start", spanButton(model, last, actions, laneText(last.row.lane))],
  ];
}

function spanButton(model, span, actions, text = spanName(model, span)) {
  const button = timelineElement("button", { type: "button", class: "tv-timeline-link" }, text);
  button.addEventListener("click", () => actions.select(span));
  return button;
}

function factList(facts) {
  const entries = facts
    .filter(([, value]) => value !== "")
    .map(([term, value]) => [timelineElement("dt", {}, term), timelineElement("dd", {}, value)])
    .map((pair) => timelineElement("div", {}, ...pair));
  return timelineElement("dl", { class: "tv-timeline-facts" }, ...entries);
}

// What a window of time holds.
export function windowPanel(model, from, to, colors, actions, title) {
  const found = windowBreakdown(model, from, to);
  const length = Math.max(1, to - from);
  const all = found.devices.length > 1 ? ", all devices" : "";
  const tables = [
    classTable(model, found.classes, length, colors),
    deviceTable(found.devices, length),
    nameTable(model, `Device work by name${all}`, found.kernels, colors),
    familyTable(model, `Device work by family${all}`, found.kernels, colors),
    nameTable(model, "API calls", found.calls, colors),
    operatorTable(model, found.operators, colors),
  ].filter(Boolean);
  const text = `${clockOf(model, from)} to ${clockOf(model, to)} · ${exactDuration(to - from)}`;
  return [
    timelineElement("h3", { class: "tv-timeline-title" }, title),
    timelineElement("p", { class: "tv-timeline-when" }, text),
    timelineElement("div", { class: "tv-timeline-tables" }, ...tables),
    spanList(model, from, to, actions),
  ];
}

// A figure from levels is one of cells, not of events.
function said(text, isExact) {
  return isExact ? text : `${text}, about: not every event of this stretch is in the page`;
}

// One column of time for each rank, and its share of the window where there is room for it.
function classTable(model, { groups, rows, isExact }, length, colors) {
  if (!rows.length) return null;
  const hasShares = groups.length <= SHARED_RANKS;
  const figures = (time) => [duration(Math.round(time)), ...(hasShares ? [percent(time / length)] : [])];
  const heads = groups.flatMap((group) => [group || "time", ...(hasShares ? ["Share"] : [])]);
  const body = rows.map(({ name, times }) => [named(model, name, colors), ...times.flatMap(figures)]);
  const sums = groups.map((_, position) => rows.reduce((sum, row) => sum + row.times[position], 0));
  const columns = [{ text: "Class" }, ...heads.map((text) => ({ text, number: true }))];
  const table = timelineTable(said("Time by class", isExact), columns, [...body, ["Sum", ...sums.flatMap(figures)]]);
  table.classList.toggle("tv-timeline-wide", !hasShares);
  return table;
}

function deviceTable(devices, length) {
  if (!devices.length) return null;
  const columns = [{ text: "Device" }, { text: "Busy", number: true }, { text: "Share", number: true }];
  const rows = devices.map(({ device, busy }) => [device, duration(Math.round(busy)), percent(busy / length)]);
  return timelineTable(said("Device busy", devices.every((device) => device.isExact)), columns, rows);
}

function nameTable(model, caption, { names, isExact }, colors) {
  if (!names.length) return null;
  const columns = sumColumns("Name", isExact);
  const rows = names.slice(0, MOST_NAMES).map(({ name, time, count: calls }) => [
    named(model, name, colors), duration(Math.round(time)), count(calls),
  ]);
  const rest = names.slice(MOST_NAMES);
  if (rest.length) {
    const sum = (key) => rest.reduce((total, one) => total + one[key], 0);
    rows.push([`${count(rest.length)} more`, duration(Math.round(sum("time"))), count(sum("count"))]);
  }
  return timelineTable(said(caption, isExact), columns, rows);
}

// Most of its own time first: what only calls others would else be above them.
function operatorTable(model, { names, isExact }, colors) {
  if (!names.length) return null;
  if (!isExact) return nameTable(model, "Operators", { names, isExact }, colors);
  const columns = [{ text: "Name" }, ...["Self", "Total", "Calls"].map((text) => ({ text, number: true }))];
  const rows = names.slice(0, MOST_NAMES).map(({ name, own, time, count: calls }) => [
    named(model, name, colors), duration(Math.round(own)), duration(Math.round(time)), count(calls),
  ]);
  const rest = names.slice(MOST_NAMES);
  const sum = (key) => rest.reduce((total, one) => total + one[key], 0);
  if (rest.length) rows.push([`${count(rest.length)} more`, duration(Math.round(sum("own"))), "", count(sum("count"))]);
  return timelineTable("Operators", columns, rows);
}

function sumColumns(what, isExact) {
  return [{ text: what }, { text: "Time", number: true }, { text: isExact ? "Calls" : "Cells", number: true }];
}

function familyTable(model, caption, { families, isExact }, colors) {
  if (!families.length) return null;
  const columns = sumColumns("Family", isExact);
  const rows = families.map(({ family, time, count: calls }) => [
    [colorSwatch(colors[family]), model.families[family].label], duration(Math.round(time)), count(calls),
  ]);
  return timelineTable(said(caption, isExact), columns, rows);
}

function named(model, name, colors) {
  const text = timelineElement("span", { class: "tv-timeline-short", title: model.names[name] }, model.names[name]);
  return [colorSwatch(colors[model.familyOf[name]]), text];
}

// The spans of the selection as a table, for those who cannot see the drawing; it is made when it is opened.
function spanList(model, from, to, actions) {
  const summary = timelineElement("summary", {}, "Spans as a table");
  const details = timelineElement("details", { class: "tv-timeline-list" }, summary);
  details.addEventListener("toggle", () => {
    if (!details.open || details.childElementCount > 1) return;
    const { spans, isAll } = spansIn(model, from, to, MOST_SPANS);
    const times = ["Starts at", "Takes"].map((text) => ({ text, number: true }));
    const columns = [{ text: "Name" }, { text: "Lane" }, ...times];
    const rows = spans.map((span) => [
      spanButton(model, span, actions), laneText(span.row.lane), clockOf(model, spanStart(span)),
      duration(spanEnd(span) - spanStart(span)),
    ]);
    const caption = isAll ? `${count(spans.length)} spans` : `The first ${count(spans.length)} spans`;
    details.append(timelineTable(caption, columns, rows));
  });
  return details;
}
