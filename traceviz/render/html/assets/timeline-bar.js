// The controls above the drawing: buttons, the search field, and the legend, which searches too.

import { count, duration } from "./format.js";
import { colorSwatch, timelineElement } from "./timeline-dom.js";
import { foundNumber } from "./timeline-search.js";

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

// One button for each family of names in view, by type of lane; `chosen` is the one whose spans are shown alone.
export function putLegend(place, model, groups, colors, chosen, choose) {
  const entry = (family) => {
    const attributes = { type: "button", "aria-pressed": String(chosen === family), "data-family": String(family) };
    const button = timelineElement("button", attributes, colorSwatch(colors[family]), model.families[family].label);
    button.addEventListener("click", () => choose(family));
    return timelineElement("li", {}, button);
  };
  const focused = place.contains(document.activeElement) ? document.activeElement.dataset.family : null;
  const lists = groups.map(([title, families]) => timelineElement(
    "li", {}, timelineElement("span", { class: "tv-timeline-of" }, title),
    timelineElement("ul", { "aria-label": title }, ...families.map(entry)),
  ));
  place.replaceChildren(...lists);
  // The button that was pressed is a new one now.
  if (focused !== null) place.querySelector(`[data-family="${focused}"]`)?.focus();
  // It never gets lower: what is below would move while one pans.
  place.style.minHeight = `${place.offsetHeight}px`;
}

// Which of the found spans is selected, how many there are, and the time that they cover.
export function matchText(model, found, text, selected) {
  if (!found.count) return `no span has “${text.slice(0, 60)}”`;
  const number = foundNumber(model, found, selected);
  const some = `${number ? `${count(number)} of ${count(found.count)}` : `${count(found.count)} spans`}, ${duration(found.time)}`;
  return model.isWhole ? some : `${some}, of those in the page`;
}
