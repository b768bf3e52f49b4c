// Flame graphs: the root at the top, every node as wide as its time. A difference is coloured from better to worse.
import { duration, percent } from "./format.js";
import { flameDepths, flameFolded, flameMatches, flameOwn, flamePlaces, flameSum, flameTimes, readFlames } from "./flame-data.js";

const FLAME_ROW = 22;
const FLAME_LEAST = 1; // narrower nodes are not drawn: zooming in shows them
const FLAME_TEXT = 26;
const FLAME_SAME = 0.02; // a change of less than this share is none

export function startFlames(root) {
  for (const element of root.querySelectorAll(".tv-flame")) new FlameGraph(element);
}

class FlameGraph {
  constructor(element) {
    this.element = element;
    this.flames = readFlames(element.querySelector('script[type="application/json"]').textContent);
    this.controls = element.querySelector(".tv-flame-controls");
    this.tree = this.controls.querySelector(".tv-flame-tree");
    this.classes = this.controls.querySelector(".tv-flame-class");
    this.views = this.controls.querySelector(".tv-flame-views");
    this.search = this.controls.querySelector(".tv-flame-search");
    this.found = flameElement("p", "tv-flame-found", "");
    this.found.setAttribute("role", "status");
    this.path = flameElement("nav", "tv-flame-path");
    this.path.setAttribute("aria-label", "Zoomed to");
    this.legend = flameElement("ul", "tv-flame-legend");
    this.graph = flameElement("div", "tv-flame-graph");
    this.graph.setAttribute("role", "tree");
    this.detail = flameElement("div", "tv-flame-detail");
    this.table = flameElement("details", "tv-folded tv-flame-table");
    this.table.append(flameElement("summary", "", "The same as a table"));
    const drawn = flameElement("div", "tv-flame-drawn"); // the detail stays in sight within it, and covers no control
    drawn.append(this.graph, this.detail);
    element.append(this.found, this.path, drawn, this.legend, this.table);
    this.listen();
    this.choose(0);
    this.controls.hidden = false;
  }

  listen() {
    this.tree.addEventListener("change", () => this.choose(Number(this.tree.value)));
    this.classes.addEventListener("change", () => this.measure());
    this.views?.addEventListener("change", () => this.measure());
    this.search.addEventListener("input", () => this.mark());
    this.search.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.search.value) return;
      this.search.value = "";
      this.mark();
      event.preventDefault();
    });
    this.controls.querySelector(".tv-flame-copy").addEventListener("click", (event) => this.copy(event.currentTarget));
    this.table.addEventListener("toggle", () => this.fillTable());
    this.graph.addEventListener("click", (event) => {
      const node = flameNodeOf(event);
      if (node !== null) this.zoom(node, node);
    });
    this.graph.addEventListener("pointerover", (event) => {
      const node = flameNodeOf(event);
      if (node !== null) this.describe(node);
    });
    this.graph.addEventListener("pointerleave", () => this.describe(this.current));
    this.graph.addEventListener("focusin", (event) => {
      const node = flameNodeOf(event);
      if (node !== null) this.stand(node);
    });
    this.graph.addEventListener("keydown", (event) => this.press(event));
    new ResizeObserver(() => {
      if (Math.abs(this.graph.clientWidth - this.drawnWidth) > 1) this.draw();
    }).observe(this.graph);
  }

  // Another tree: everything that depends on it anew.
  choose(number) {
    this.flame = this.flames[number];
    this.depths = flameDepths(this.flame);
    this.zoomed = 0;
    this.current = 0;
    this.classes.replaceChildren(new Option("all of it", "-1"));
    this.flame.classes.forEach(([, label], column) => this.classes.append(new Option(label, String(column))));
    this.classes.disabled = this.flame.classes.length < 2;
    if (this.views) this.views.disabled = !this.flame.base;
    this.graph.setAttribute("aria-label", this.flame.label);
    this.measure();
  }

  get view() {
    return this.flame.base ? this.views.querySelector("input:checked").value : "new";
  }

  // Another class or side: the same tree with other times.
  measure() {
    const column = Number(this.classes.value);
    const { flame, view } = this;
    this.times = flameTimes(flame, column, view === "base" ? "base" : "new");
    this.others = flame.base ? flameTimes(flame, column, "base") : null;
    this.widths = view === "difference" ? this.times.map((time, node) => time + this.others[node]) : this.times;
    this.own = flameOwn(flame, this.times);
    this.begins = flamePlaces(flame, this.widths);
    while (this.zoomed && !this.widths[this.zoomed]) this.zoomed = flame.parents[this.zoomed];
    while (this.current && !this.widths[this.current]) this.current = flame.parents[this.current];
    this.fillLegend();
    this.mark();
    this.fillTable();
  }

  mark() {
    const { flags, count } = flameMatches(this.flame, this.search.value);
    this.flags = count ? flags : null;
    this.found.textContent = this.search.value.trim() ? this.foundText(flags, count) : "";
    this.draw();
  }

  foundText(flags, count) {
    if (!count) return "No node matches.";
    const sum = flameSum(this.flame, flags, this.times);
    const text = `${count} ${count === 1 ? "node matches" : "nodes match"}: ${duration(sum)}, ${this.shareText(sum)}`;
    if (!this.others || this.view !== "difference") return text;
    return `${text}; base ${duration(flameSum(this.flame, flags, this.others))}`;
  }

  shareText(time) {
    return this.times[0] ? `${percent(time / this.times[0])} of the whole` : "nothing of the whole";
  }

  zoom(node, focused) {
    this.zoomed = node;
    this.current = focused;
    this.draw();
    this.nodes.get(focused)?.focus();
  }

  draw() {
    const shown = this.visible();
    this.drawnWidth = this.graph.clientWidth;
    const hadFocus = this.graph.contains(document.activeElement);
    this.nodes = new Map();
    let deepest = 0;
    for (const { node, left, width } of shown) {
      this.nodes.set(node, this.drawn(node, left, width));
      deepest = Math.max(deepest, this.depths[node]);
    }
    this.graph.replaceChildren(...this.nodes.values());
    this.graph.style.height = `${(deepest + 1) * FLAME_ROW}px`;
    if (!this.nodes.has(this.current)) this.current = this.zoomed;
    this.nodes.get(this.current).tabIndex = 0;
    if (hadFocus) this.nodes.get(this.current).focus();
    this.describe(this.current);
    this.fillPath();
  }

  // The nodes that are wide enough, with their place in percent: those around the zoomed one fill the width.
  visible() {
    const { flame, zoomed } = this;
    const first = this.begins[zoomed];
    const whole = this.widths[zoomed];
    const least = (FLAME_LEAST / Math.max(this.graph.clientWidth, 1)) * 100;
    const state = new Int8Array(this.widths.length); // 1: around the zoomed node, 2: it or in it
    for (let node = zoomed; node > 0; node = flame.parents[node]) state[flame.parents[node]] = 1;
    state[zoomed] = 2;
    const shown = [];
    for (let node = 0; node < state.length; node += 1) {
      if (node && !state[node] && state[flame.parents[node]] === 2) state[node] = 2;
      if (state[node] === 1) shown.push({ node, left: 0, width: 100 });
      if (state[node] !== 2) continue;
      const width = whole ? (this.widths[node] / whole) * 100 : 100;
      if (node === zoomed || width >= least) {
        shown.push({ node, left: whole ? ((this.begins[node] - first) / whole) * 100 : 0, width });
      } else {
        state[node] = 3;
      }
    }
    return shown;
  }

  drawn(node, left, width) {
    const element = flameElement("div", "tv-flame-node");
    element.dataset.node = String(node);
    element.setAttribute("role", "treeitem");
    element.setAttribute("aria-level", String(this.depths[node] + 1));
    element.setAttribute("aria-label", this.spoken(node));
    element.tabIndex = -1;
    element.style.left = `${left}%`;
    element.style.width = `${width}%`;
    element.style.top = `${this.depths[node] * FLAME_ROW}px`;
    if ((width / 100) * this.drawnWidth >= FLAME_TEXT) element.textContent = this.written(node);
    if (this.flags) element.classList.add(this.flags[node] ? "tv-flame-match" : "tv-flame-dim");
    if (this.depths[node] < this.depths[this.zoomed]) element.classList.add("tv-flame-around");
    this.paint(element, node);
    return element;
  }

  // The name; in a difference with the change, which colour alone must not tell.
  written(node) {
    const name = this.flame.names[node];
    if (this.view !== "difference" || !this.change(node)) return name;
    const other = this.others[node];
    return `${flameChange(this.times[node], other) || "new"} ${name}`;
  }

  paint(element, node) {
    if (this.view === "difference") {
      const change = this.change(node);
      const color = change === 0 ? "var(--tv-quiet)" : change < 0 ? "var(--tv-good)" : "var(--tv-bad)";
      element.dataset.change = change === 0 ? "same" : change < 0 ? "better" : "worse";
      element.style.setProperty("--tv-flame-color", color);
      element.style.setProperty("--tv-flame-strength", `${Math.round(12 + 34 * Math.abs(change))}%`);
    } else if (this.flame.families[node]) {
      element.style.setProperty("--tv-flame-color", this.flame.families[node].color);
    }
  }

  // From -1, which is gone, over 0, which is the same, to 1, which is new.
  change(node) {
    const [time, other] = [this.times[node], this.others[node]];
    const change = (time - other) / Math.max(time, other, 1);
    return Math.abs(change) < FLAME_SAME ? 0 : change;
  }

  spoken(node) {
    return [this.flame.names[node], ...this.facts(node).map(([label, text]) => `${label} ${text}`)].join(", ");
  }

  // What there is to say of a node, as pairs of label and text.
  facts(node) {
    const { flame, times } = this;
    const parent = flame.parents[node];
    const facts = [["time", duration(times[node])]];
    if (this.view === "difference") facts.push(...this.changeFacts(node));
    if (flame.steps > 1) facts.push(["per step", duration(times[node] / flame.steps)]);
    if (node && times[0]) facts.push(["of the whole", percent(times[node] / times[0])]);
    if (parent > 0 && times[parent]) facts.push([`of ${flameShort(flame.names[parent])}`, percent(times[node] / times[parent])]);
    if (node && this.own[node] !== times[node]) facts.push(["of its own", duration(Math.max(this.own[node], 0))]);
    if (flame.places[node]) facts.push(["at", flame.places[node]]);
    return facts;
  }

  changeFacts(node) {
    const difference = this.times[node] - this.others[node];
    const share = flameChange(this.times[node], this.others[node]);
    const text = `${difference > 0 ? "+" : ""}${duration(difference)}${share ? `, ${share}` : ""}`;
    return [["base", duration(this.others[node])], ["change", text]];
  }

  describe(node) {
    const list = flameElement("dl", "tv-facts");
    for (const [label, text] of this.facts(node)) {
      const pair = flameElement("div");
      pair.append(flameElement("dt", "", label), flameElement("dd", "tv-figure", text));
      list.append(pair);
    }
    this.detail.replaceChildren(flameElement("p", "tv-flame-name", this.flame.names[node]), list);
  }

  stand(node) {
    if (node === this.current) return this.describe(node);
    const before = this.nodes.get(this.current);
    if (before) before.tabIndex = -1;
    this.current = node;
    this.nodes.get(node).tabIndex = 0;
    this.describe(node);
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = {
      ArrowDown: () => this.firstInside(this.current),
      ArrowUp: () => this.flame.parents[this.current],
      ArrowRight: () => this.beside(1),
      ArrowLeft: () => this.beside(-1),
      Home: () => 0,
    };
    if (moves[event.key]) {
      const node = moves[event.key]();
      if (this.nodes.has(node)) this.nodes.get(node).focus();
    } else if (event.key === "Enter" || event.key === " ") {
      this.zoom(this.current, this.current);
    } else if (event.key === "Escape" && this.zoomed) {
      this.zoom(this.flame.parents[this.zoomed], this.current);
    } else {
      return;
    }
    event.preventDefault();
  }

  firstInside(node) {
    for (const other of this.nodes.keys()) if (this.flame.parents[other] === node) return other;
    return -1;
  }

  // The next node of the same depth, also in another branch.
  beside(step) {
    const row = [...this.nodes.keys()].filter((node) => this.depths[node] === this.depths[this.current]);
    return row[row.indexOf(this.current) + step] ?? -1;
  }

  fillPath() {
    const nodes = [];
    for (let node = this.zoomed; node >= 0; node = this.flame.parents[node]) nodes.unshift(node);
    const crumbs = nodes.map((node) => {
      if (node === this.zoomed) return flameElement("span", "tv-flame-crumb", this.flame.names[node]);
      const button = flameElement("button", "tv-flame-crumb", this.flame.names[node]);
      button.type = "button";
      button.addEventListener("click", () => this.zoom(node, node));
      return button;
    });
    this.path.hidden = !this.zoomed;
    this.path.replaceChildren(...crumbs);
  }

  fillLegend() {
    const families = new Map();
    this.flame.families.forEach((family, node) => {
      if (family && this.widths[node]) families.set(family.label, [family.label, family.color]);
    });
    const scale = [
      ["less time than the base", "var(--tv-good)"],
      ["as much", "var(--tv-quiet)"],
      ["more", "var(--tv-bad)"],
    ];
    const entries = this.view === "difference" ? scale : [...families.values()];
    this.legend.replaceChildren(...entries.map(([label, color]) => flameSwatch(label, color)));
  }

  fillTable() {
    this.table.querySelector("div")?.remove();
    if (!this.table.open) return;
    const frame = flameElement("div", "tv-scroll");
    frame.tabIndex = 0;
    frame.setAttribute("role", "region");
    frame.setAttribute("aria-label", `${this.flame.label}, as a table`);
    const table = flameElement("table", "tv-grid");
    const head = flameElement("tr");
    const titles = ["Name", "Level", "Time", "Of the whole", "Of its own", ...(this.others ? ["Base"] : []), "Place"];
    for (const title of titles) head.append(flameElement("th", "", title));
    for (const cell of head.children) cell.scope = "col";
    const body = flameElement("tbody");
    for (let node = 1; node < this.times.length; node += 1) if (this.widths[node]) body.append(this.row(node));
    const top = flameElement("thead");
    top.append(head);
    table.append(top, body);
    frame.append(table);
    this.table.append(frame);
  }

  row(node) {
    const row = flameElement("tr");
    const name = flameElement("th", "tv-flame-cell", this.flame.names[node]);
    name.scope = "row";
    name.style.paddingLeft = `${Math.min(this.depths[node] - 1, 24) * 0.75}rem`;
    const figures = [
      String(this.depths[node]),
      duration(this.times[node]),
      this.times[0] ? percent(this.times[node] / this.times[0]) : "",
      duration(Math.max(this.own[node], 0)),
      ...(this.others ? [duration(this.others[node])] : []),
    ];
    row.append(name, ...figures.map((text) => flameElement("td", "tv-number", text)));
    row.append(flameElement("td", "", this.flame.places[node]));
    return row;
  }

  async copy(button) {
    const text = flameFolded(this.flame, this.times);
    const done = await flameCopied(text);
    this.found.textContent = done ? "Copied." : "The browser does not let this page copy.";
    button.focus();
  }
}

// Whether the text is in the clipboard now. Pages from files may not use the newer way in some browsers.
async function flameCopied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = flameElement("textarea", "tv-unseen");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

function flameNodeOf(event) {
  const element = event.target.closest(".tv-flame-node");
  return element ? Number(element.dataset.node) : null;
}

// "+12.3 %" of the base; nothing where the base has no time.
function flameChange(time, other) {
  return other ? `${time > other ? "+" : ""}${percent((time - other) / other)}` : "";
}

function flameShort(name) {
  return name.length > 48 ? `${name.slice(0, 47)}…` : name;
}

function flameSwatch(label, color) {
  const item = flameElement("li", "", label);
  item.style.setProperty("--tv-flame-color", color);
  return item;
}

function flameElement(tag, className = "", text = "") {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = text;
  return element;
}
