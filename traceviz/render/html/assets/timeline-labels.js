// Names of groups, lanes and curves at the left of the drawing; above their lanes on narrow pages. What can be folded
// is a button.

import { figureText } from "./timeline-texts.js";
import { timelineElement } from "./timeline-dom.js";

// Put a label for each item of the layout into `place`; `fold` is told of a group or lane that is to fold or unfold.
export function putLabels(place, layout, fold) {
  const focused = place.contains(document.activeElement) ? document.activeElement.dataset.fold : null;
  place.replaceChildren(...layout.items.map((item) => itemLabel(item, fold)));
  // The button that was pressed is a new one now.
  if (focused) [...place.querySelectorAll("[data-fold]")].find((one) => one.dataset.fold === focused)?.focus();
}

function itemLabel(item, fold) {
  const label = LABELS[item.kind](item, fold);
  label.classList.add("tv-timeline-label", `tv-timeline-label-${item.kind}`);
  label.style.top = `${item.y}px`;
  label.style.height = `${item.height}px`;
  return label;
}

const LABELS = {
  group: ({ group, closed }, fold) =>
    foldButton(group.label || "all", closed, `group ${group.label}`, () => fold(group)),
  lane: ({ lane, label, closed }, fold) =>
    (lane.rows.length > 1 ? laneButton(lane, label, closed, fold) : plainLabel(label)),
  curve: ({ curve }) => curveLabel(curve),
};

function laneButton(lane, label, closed, fold) {
  const button = foldButton(label, closed, `lane ${lane.key}`, () => fold(lane));
  if (closed) button.append(timelineElement("span", { class: "tv-timeline-rows" }, `${lane.rows.length} rows`));
  return button;
}

function foldButton(text, closed, key, press) {
  const button = timelineElement(
    "button", { type: "button", "aria-expanded": String(!closed), "data-fold": key, title: text },
    timelineElement("span", { class: "tv-timeline-fold", "aria-hidden": "true" }, closed ? "▸" : "▾"),
    ...nameParts(text),
  );
  button.addEventListener("click", press);
  return button;
}

function plainLabel(text) {
  return timelineElement("div", { title: text }, ...nameParts(text));
}

// What a name ends with tells lanes of one thread apart: of a long name the middle is left out, not the end.
function nameParts(text) {
  const end = /(?<=\)) [^()]{1,14}$| \S{4,10}$/.exec(text)?.[0] ?? "";
  const parts = [timelineElement("span", { class: "tv-timeline-name" }, text.slice(0, text.length - end.length))];
  if (end) parts.push(timelineElement("span", { class: "tv-timeline-end" }, end));
  return parts;
}

function curveLabel(curve) {
  const most = curve.unit === "ratio" ? Math.max(1, curve.largest) : curve.largest;
  const scale = timelineElement("span", { class: "tv-timeline-rows" }, `up to ${figureText(most, curve.unit)}`);
  const name = timelineElement("div", { class: "tv-timeline-line", title: curve.label }, ...nameParts(curve.label));
  return timelineElement("div", {}, name, scale);
}
