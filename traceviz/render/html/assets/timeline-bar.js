// The controls above the drawing: buttons, the search field, and the legend, which searches too.

import { count, duration } from "./format.js";
import { colorSwatch, timelineElement } from "./timeline-dom.js";

const SEARCH_WAIT_MILLISECONDS = 120;

const TIMELINE_BUTTONS = {
  in: (timeline) => timeline.zoomBy(0.5),
  out: (timeline) => timeline.zoomBy(2),
  left: (timeline) => timeline.panShare(-0.3),
  right: (timeline) => timeline.panShare(0.3),
  whole: (timeline) => timeline.whole(),
  fit: (timeline) => timeline.fit(),
  mark: (timeline) => timeline.markView(),
  previous: (timeline) => timeline.step(-1),
  following: (timeline) => timeline.step(1),
  before: (timeline) => timeline.next(false),
  after: (timeline) => timeline.next(true),
  copy: (timeline) => timeline.copyCommand(),
  help: (timeline) => timeline.help(),
};

export function listenToBar(timeline, element) {
  for (const button of element.querySelectorAll("[data-act]")) {
    button.addEventListener("click", () => TIMELINE_BUTTONS[button.dataset.act](timeline));
  }
  timeline.part("copy").hidden = !document.body.dataset.command;
  listenToSearch(timeline, timeline.part("search"));
}

function listenToSearch(timeline, input) {
  let waiting = 0;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => timeline.searchFor(input.value), SEARCH_WAIT_MILLISECONDS);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== "Escape") return;
    event.preventDefault();
    clearTimeout(waiting);
    if (event.key === "Escape") input.value = "";
    timeline.searchFor(input.value);
    if (event.key === "Enter") timeline.next(!event.shiftKey);
    else timeline.box.focus();
  });
}

// One button for each family of names; `chosen` is the one whose spans are shown alone.
export function putLegend(place, model, colors, chosen, choose) {
  const entries = model.families.map(({ label }, family) => {
    const attributes = { type: "button", "aria-pressed": String(chosen === family) };
    const button = timelineElement("button", attributes, colorSwatch(colors[family]), label);
    button.addEventListener("click", () => choose(family));
    return timelineElement("li", {}, button);
  });
  const focused = [...place.children].findIndex((entry) => entry.contains(document.activeElement));
  place.replaceChildren(...entries);
  // The button that was pressed is a new one now.
  entries[focused]?.firstChild.focus();
}

// How many spans a search found, and their time.
export function matchText(model, found, text) {
  if (!found.count) return `no span has “${text.slice(0, 60)}”`;
  const some = `${count(found.count)} spans, ${duration(found.time)} in all`;
  return model.isWhole ? some : `${some}, of those in the page`;
}
