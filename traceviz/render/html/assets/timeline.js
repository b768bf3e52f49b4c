// The timeline: holds what is in view and what is selected, and has all of it drawn at the next frame.

import { copyText } from "./copy.js";
import { duration } from "./format.js";
import { listenToBar, matchText, putLegend } from "./timeline-bar.js";
import { familiesInView, familyColors, themeColors, timelinePaint } from "./timeline-colors.js";
import { readTimeline } from "./timeline-data.js";
import { timelineElement } from "./timeline-dom.js";
import { TimelineDrawing } from "./timeline-draw.js";
import { listenToTimeline } from "./timeline-input.js";
import { putLabels } from "./timeline-labels.js";
import { AXIS_HEIGHT, firstFolds, groupOf, laneGroups, laneLayout, stripOf } from "./timeline-layout.js";
import { drawOverlay } from "./timeline-overlay.js";
import { TimelineOverview } from "./timeline-overview.js";
import { spanPanel, windowPanel } from "./timeline-panel.js";
import { hasEvents, spanEnd, spanStart, steadyTime } from "./timeline-rows.js";
import {
  boundedView, clockSeconds, fittedView, pannedView, perPixel, pixelAt, timeAt, wholeView, zoomedView,
} from "./timeline-scale.js";
import { nearestInRow, neighbourInRow, nextFound, searchFamily, searchNames } from "./timeline-search.js";
import { spanLinks } from "./timeline-select.js";
import { STRIPED_PIXELS } from "./timeline-strips.js";
import { clockOf, spokenSpan } from "./timeline-texts.js";
import { placeTooltip, tooltipContent } from "./timeline-tooltip.js";
import { underPoint } from "./timeline-under.js";

const NARROW_PIXELS = 640;
const ZOOM_MILLISECONDS = 160;
const LEGEND_WAIT_MILLISECONDS = 250;
const COPIED_MILLISECONDS = 1500;
// On paper, the drawing has this width in CSS pixels, and at most this height, so that it fits on one page.
const PRINTED_WIDTH = 560;
const PRINTED_HEIGHT = 860;
// Spans of these kinds are windows of time: what happened inside of them is what one wants to know.
const WINDOW_KINDS = new Set(["steps", "ranges", "ops", "phases", "device_ops", "stacks", "classes", "os"]);

// Start the timeline of the document `root`, if it has one.
export async function startTimeline(root) {
  const element = root.getElementById("tv-timeline-view");
  const header = root.getElementById("tv-timeline");
  const data = root.getElementById("tv-timeline-data");
  if (!element || !header || !data) return;
  if (!("DecompressionStream" in globalThis)) {
    element.querySelector(".tv-timeline-about").append(" This browser is too old to draw it.");
    return;
  }
  const model = await readTimeline(header.textContent, data.textContent);
  performance.mark("tv-timeline-decoded");
  element.timeline = new TimelineView(element, model);
}

class TimelineView {
  constructor(element, model) {
    this.element = element;
    this.model = model;
    this.part = (name) => element.querySelector(`.tv-timeline-${name}`);
    this.groups = laneGroups(model);
    this.folds = firstFolds(this.groups);
    this.found = null;
    this.selected = null;
    this.window = null;
    this.links = [];
    this.under = null;
    this.pointer = null;
    this.frame = 0;
    this.isDrawn = false;
    this.buildStage();
    const steady = steadyTime(model);
    this.view = steady ? fittedView(steady.from, steady.to, model.span, 1) : wholeView(model.span, 1);
    this.listen();
    this.paintAgain();
    this.resize();
  }

  buildStage() {
    this.canvas = timelineElement("canvas", { class: "tv-timeline-canvas", "aria-hidden": "true" });
    this.overlay = timelineElement("canvas", { class: "tv-timeline-overlay", "aria-hidden": "true" });
    this.stage = timelineElement("div", { class: "tv-timeline-stage" }, this.canvas, this.overlay);
    this.labels = timelineElement("div", { class: "tv-timeline-labels" });
    const corner = timelineElement("div", { class: "tv-timeline-corner" });
    this.sizer = timelineElement("div", { class: "tv-timeline-sizer" }, this.labels, corner, this.stage);
    this.box = this.part("box");
    this.box.replaceChildren(this.sizer);
    this.tooltip = timelineElement("div", { class: "tv-timeline-tooltip", "aria-hidden": "true", hidden: true });
    this.part("frame").append(this.tooltip);
    this.drawing = new TimelineDrawing(this.canvas, this.model);
    this.overlayContext = this.overlay.getContext("2d");
    const line = timelineElement("canvas", { class: "tv-timeline-overview", "aria-hidden": "true" });
    this.part("frame").prepend(line);
    this.overview = new TimelineOverview(line, this.model, (time) => this.centre(time));
    for (const name of ["bar", "frame"]) this.part(name).hidden = false;
  }

  listen() {
    listenToTimeline(this.box, this.overlay, this);
    this.box.addEventListener("scroll", () => (this.hideTooltip(), this.drawSoon()));
    // At the next frame: a resize may change the layout, which an observer must not do while it is told of one.
    new ResizeObserver(() => requestAnimationFrame(() => this.resize())).observe(this.box);
    const themed = () => this.paintAgain();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themed);
    new MutationObserver(themed).observe(document.documentElement, { attributeFilter: ["data-theme", "class"] });
    addEventListener("beforeprint", () => this.startPrinting());
    addEventListener("afterprint", () => this.endPrinting());
    document.addEventListener("traceviz:show", ({ detail }) => this.show(detail.start, detail.end, detail.lane));
    listenToBar(this, this.element);
  }

  // Sizes and places

  resize() {
    if (this.isPrinting) return;
    const narrow = this.element.clientWidth < NARROW_PIXELS;
    if (narrow !== this.narrow) {
      this.narrow = narrow;
      this.element.classList.toggle("tv-timeline-narrow", narrow);
      this.layOut();
    }
    const width = Math.max(1, this.stage.clientWidth);
    const height = this.box.clientHeight;
    const ratio = devicePixelRatio || 1;
    if (width === this.view.width && height === this.height && ratio === this.ratio) return;
    const isOther = ratio !== this.ratio;
    this.sizeStage(width, height, ratio);
    this.overview.canvas.style.width = `${width}px`;
    const isWhole = this.view.to - this.view.from >= this.model.span;
    this.view = isWhole ? wholeView(this.model.span, width) : { ...this.view, width };
    if (isOther) this.paintAgain();
    this.overview.fill(this.paint, width, ratio);
    // A canvas of a new size is empty: until the next frame it would be seen to be.
    this.draw();
  }

  // Paper shows the lanes from the top on, at its own width, whatever is scrolled here.
  startPrinting() {
    this.isPrinting = true;
    this.beforePrinting = { view: this.view, top: this.box.scrollTop };
    const last = this.layout.items.filter((item) => item.y + item.height <= PRINTED_HEIGHT).at(-1);
    const height = last ? last.y + last.height : Math.min(this.layout.height, PRINTED_HEIGHT);
    this.box.scrollTop = 0;
    this.motion = null;
    this.view = { ...this.view, width: PRINTED_WIDTH };
    this.sizeStage(PRINTED_WIDTH, height, Math.max(2, this.ratio));
    this.sizer.style.height = `${height}px`;
    this.paintAgain();
    this.draw();
    // Browsers do not print a canvas inside of a box that scrolls.
    this.printed = timelineElement("img", { class: "tv-timeline-printed", src: this.canvas.toDataURL(), alt: "" });
    this.stage.append(this.printed);
  }

  endPrinting() {
    if (!this.isPrinting) return;
    this.isPrinting = false;
    this.printed.remove();
    this.sizer.style.height = `${this.layout.height}px`;
    this.view = this.beforePrinting.view;
    this.box.scrollTop = this.beforePrinting.top;
    this.height = null;
    this.resize();
    this.paintAgain();
  }

  sizeStage(width, height, ratio) {
    for (const canvas of [this.canvas, this.overlay]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = `${height}px`;
    }
    this.stage.style.height = `${height}px`;
    [this.height, this.ratio] = [height, ratio];
  }

  layOut() {
    this.layout = laneLayout(this.groups, this.folds, this.narrow);
    this.sizer.style.height = `${this.layout.height}px`;
    putLabels(this.labels, this.layout, (folded) => this.fold(folded));
    this.legendSoon();
    this.drawSoon();
  }

  fold(folded) {
    const [folds, key] = folded.lanes ? [this.folds.groups, folded.label] : [this.folds.lanes, folded];
    if (!folds.delete(key)) folds.add(key);
    this.layOut();
  }

  paintAgain() {
    this.theme = themeColors(this.element);
    this.colors = familyColors(this.model, this.theme);
    this.putLegend();
    this.paintFound();
  }

  paintFound() {
    this.paint = timelinePaint(this.model, this.theme, this.found?.names ?? null, this.ratio ?? 1);
    this.overview.fill(this.paint, this.view.width, this.ratio ?? 1);
    this.drawSoon();
  }

  putLegend() {
    if (!this.layout) return;
    const groups = familiesInView(this.model, this.layout, this.view);
    const choose = (family) => this.searchFamily(family);
    putLegend(this.part("legend"), this.model, groups, this.colors, this.found?.family, choose);
  }

  // Once what is in view stays the same for a moment.
  legendSoon() {
    clearTimeout(this.legendTimer);
    this.legendTimer = setTimeout(() => this.putLegend(), LEGEND_WAIT_MILLISECONDS);
  }

  // Drawing: at most once a frame

  drawSoon() {
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.scene = {
      view: this.view, layout: this.layout, paint: this.paint, found: this.found,
      scroll: this.box.scrollTop, height: this.height, ratio: this.ratio,
    };
    this.drawing.draw(this.scene);
    this.overview.draw(this.view);
    this.drawMarks();
    this.sayDetail();
    if (this.isDrawn) return;
    this.isDrawn = true;
    performance.mark("tv-timeline-drawn");
  }

  drawMarks() {
    const { selected, window, links, pointer } = this;
    drawOverlay(this.overlayContext, this.scene, { hover: this.under?.span, selected, window, links, pointer });
  }

  // Where the budget left levels only, and they are wider than pixels.
  sayDetail() {
    const { from, to } = this.view;
    const striped = (perPixel(this.view) * STRIPED_PIXELS) / this.ratio;
    const coarse = this.model.rows.some(
      (row) => !row.isWhole && row.levels[0].width >= striped && !hasEvents(this.model, row, from, to),
    );
    if (coarse !== this.isCoarse) this.part("coarse").hidden = !coarse;
    this.isCoarse = coarse;
  }

  // What is in view

  setView(view) {
    this.motion = null;
    this.view = view;
    this.hideTooltip();
    this.legendSoon();
    this.drawSoon();
  }

  // Move there; at once for those who want no motion.
  moveTo(view) {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return this.setView(view);
    const motion = (this.motion = { from: this.view, begin: performance.now() });
    const step = (now) => {
      if (this.motion !== motion) return;
      const share = Math.min(1, Math.max(0, (now - motion.begin) / ZOOM_MILLISECONDS));
      const eased = 1 - (1 - share) ** 3;
      const between = (one, other) => one + (other - one) * eased;
      const { from, to } = motion.from;
      this.view = boundedView(between(from, view.from), between(to, view.to), this.model.span, this.view.width);
      this.draw();
      if (share < 1) requestAnimationFrame(step);
      else this.setView({ ...view, width: this.view.width });
    };
    requestAnimationFrame(step);
    return undefined;
  }

  centre(time) {
    const half = (this.view.to - this.view.from) / 2;
    this.setView(boundedView(time - half, time + half, this.model.span, this.view.width));
  }

  pan(pixels) {
    this.setView(pannedView(this.view, pixels, this.model.span));
  }

  panShare(share) {
    this.moveTo(pannedView(this.view, share * this.view.width, this.model.span));
  }

  drag(x, y) {
    if (x) this.pan(x);
    if (y) this.box.scrollTop += y;
  }

  zoomAt(factor, x) {
    this.setView(zoomedView(this.view, factor, x, this.model.span));
  }

  // Zoom around the selection if it is in view, else around the middle.
  zoomBy(factor) {
    const { from, to } = this.chosenTime() ?? this.view;
    const x = pixelAt(this.view, (from + to) / 2);
    const middle = x >= 0 && x <= this.view.width ? x : this.view.width / 2;
    this.moveTo(zoomedView(this.view, factor, middle, this.model.span));
  }

  whole() {
    this.moveTo(wholeView(this.model.span, this.view.width));
  }

  fit() {
    const time = this.chosenTime();
    if (time) this.moveTo(fittedView(time.from, time.to, this.model.span, this.view.width));
  }

  chosenTime() {
    return this.window ?? (this.selected && { from: spanStart(this.selected), to: spanEnd(this.selected) });
  }

  // Show a place of the trace's clock: zoom there, mark it, bring its lane into view.
  show(start, end, laneKey = "") {
    const [from, to] = [start - this.model.start, end - this.model.start];
    this.moveTo(fittedView(from, to, this.model.span, this.view.width));
    const lane = this.model.lanes.find((one) => one.key === laneKey);
    const nearest = (lane?.rows ?? []).filter((row) => row.count).map((row) => nearestInRow(row, from));
    const span = nearest.find((one) => spanStart(one) === from && spanEnd(one) === to);
    if (span) this.select(span);
    else this.selectWindow(from, to);
    if (lane?.rows.length) this.bringIntoView(span?.row ?? lane.rows[0], true);
    this.part("body").scrollIntoView({ block: "start" });
    this.box.focus({ preventScroll: true });
  }

  // Scroll to a row, or, if it is to be near the top, so far that it is in the upper third.
  bringIntoView(row, isNearTop = false) {
    const group = groupOf(this.groups, row.lane);
    if (this.folds.groups.delete(group.label)) this.layOut();
    const { y, height } = stripOf(this.layout, row);
    if (isNearTop && y > this.height / 3) this.box.scrollTop = y - AXIS_HEIGHT - 2 * height;
    if (y < this.box.scrollTop + AXIS_HEIGHT) this.box.scrollTop = y - AXIS_HEIGHT - height;
    if (y + height > this.box.scrollTop + this.height) this.box.scrollTop = y + 2 * height - this.height;
  }

  // Pointer

  hover(x, y) {
    this.pointer = x;
    this.under = x === null ? null : underPoint(this.model, this.scene, x, y);
    this.tooltip.hidden = !this.under;
    if (this.under) {
      this.tooltip.replaceChildren(...tooltipContent(this.model, this.under, this.colors));
      const frame = this.part("frame").getBoundingClientRect();
      const stage = this.stage.getBoundingClientRect();
      placeTooltip(this.tooltip, frame, x + stage.left - frame.left, y + stage.top - frame.top);
    }
    this.drawMarks();
  }

  // What moves under the pointer is not covered.
  hideTooltip() {
    this.tooltip.hidden = true;
    this.under = null;
  }

  click(x, y) {
    this.box.focus({ preventScroll: true });
    const under = underPoint(this.model, this.scene, x, y);
    if (under?.span) this.select(under.span);
    else this.clear();
  }

  zoomTo(x, y) {
    const under = underPoint(this.model, this.scene, x, y);
    if (!under?.span) return;
    this.select(under.span);
    this.fit();
  }

  selecting(x, other) {
    const [from, to] = [Math.min(x, other), Math.max(x, other)].map((at) => timeAt(this.view, at));
    this.window = { from: Math.max(0, Math.round(from)), to: Math.min(this.model.span, Math.round(to)) };
    this.tooltip.hidden = true;
    this.drawMarks();
  }

  endSelecting() {
    if (this.window) this.selectWindow(this.window.from, this.window.to);
  }

  // Selection

  select(span) {
    this.window = null;
    this.selected = span;
    this.links = spanLinks(this.model, span);
    const [from, to] = [spanStart(span), spanEnd(span)];
    const inside = WINDOW_KINDS.has(span.row.lane.kind) && to > from
      ? windowPanel(this.model, from, to, this.colors, this, "What happened meanwhile") : [];
    this.putPanel([...spanPanel(this.model, span, this.links, this.colors, this), ...inside]);
    this.bringIntoView(span.row);
    this.keepInView(from, to);
    this.say(spokenSpan(this.model, span));
    this.sayFound();
    this.tellWindow(from, to);
  }

  selectWindow(from, to) {
    if (to <= from) return this.clear();
    this.selected = null;
    this.links = [];
    this.window = { from, to };
    this.putPanel(windowPanel(this.model, from, to, this.colors, this, "Selected time"));
    this.say(`${duration(to - from)} selected, from ${clockOf(this.model, from)}`);
    this.tellWindow(from, to);
    return undefined;
  }

  markView() {
    this.selectWindow(Math.round(this.view.from), Math.round(this.view.to));
  }

  clear() {
    const hadSearch = this.found && !this.selected && !this.window;
    [this.selected, this.window, this.links] = [null, null, []];
    this.putPanel([]);
    if (hadSearch) {
      this.part("search").value = "";
      this.searchFor("");
    }
    this.say("");
    this.tell({ start: null, end: null });
    this.drawMarks();
  }

  putPanel(children) {
    this.part("panel").replaceChildren(...children);
    this.drawSoon();
  }

  keepInView(from, to) {
    if (to >= this.view.from && from <= this.view.to) return;
    const middle = (from + to) / 2;
    const half = (this.view.to - this.view.from) / 2;
    this.moveTo(boundedView(middle - half, middle + half, this.model.span, this.view.width));
  }

  say(text) {
    this.part("live").textContent = text;
  }

  tellWindow(from, to) {
    this.tell({ start: this.model.start + from, end: this.model.start + to });
  }

  tell(detail) {
    document.dispatchEvent(new CustomEvent("traceviz:window", { detail }));
  }

  // The span before or after the selected one; the first in view where none is selected.
  step(by) {
    if (!this.selected) return this.selectFirst();
    const span = neighbourInRow(this.selected, by);
    return span ? this.select(span) : this.say("no more spans in this row");
  }

  selectFirst() {
    const row = this.shownRows().find((one) => one.count);
    if (row) this.select(nearestInRow(row, this.view.from));
  }

  stepRow(by) {
    if (!this.selected) return this.selectFirst();
    const rows = this.shownRows().filter((row) => row.count);
    const row = rows[rows.indexOf(this.selected.row) + by];
    const middle = (spanStart(this.selected) + spanEnd(this.selected)) / 2;
    return row ? this.select(nearestInRow(row, middle)) : this.say("no more lanes");
  }

  shownRows() {
    return this.layout.items.flatMap((item) => item.strips.flatMap((strip) => strip.rows));
  }

  // Search

  search() {
    this.part("search").focus();
    this.part("search").select();
  }

  searchFor(text) {
    this.setFound(searchNames(this.model, text), text.trim());
  }

  searchFamily(family) {
    this.part("search").value = "";
    const isOn = this.found?.family === family;
    const found = isOn ? null : { ...searchFamily(this.model, family), family };
    this.setFound(found, this.model.families[family].label);
  }

  setFound(found, text) {
    this.found = found && { ...found, text };
    this.sayFound();
    this.putLegend();
    this.paintFound();
  }

  sayFound() {
    const { found } = this;
    this.part("matches").textContent = found ? matchText(this.model, found, found.text, this.selected) : "";
  }

  next(isForward) {
    if (!this.found) return this.search();
    const span = nextFound(this.model, this.found, this.selected, this.view.from, isForward);
    return span ? this.select(span) : undefined;
  }

  async copyCommand() {
    const { from, to } = this.chosenTime() ?? this.view;
    const [begin, end] = [from, to].map((time) => clockSeconds(this.model.start + time));
    const command = `${document.body.dataset.command} --from ${begin}s --to ${end}s`;
    const isCopied = await copyText(command);
    // Where a browser refuses, the text is there to be copied by hand.
    this.part("copied").textContent = isCopied ? `Copied: ${command}` : command;
    const button = this.part("copy").firstChild;
    button.textContent = isCopied ? "Copied" : "See below";
    setTimeout(() => (button.textContent = "Copy command"), COPIED_MILLISECONDS);
  }

  help() {
    const help = this.part("help");
    help.open = !help.open;
    if (help.open) help.scrollIntoView({ block: "nearest" });
  }
}
