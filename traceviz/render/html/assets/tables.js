// Tables that sort by any column, filter by words, and show their first rows until they are unfolded.
import { announce, made } from "./dom.js";

const TABLES_LEAST_TO_FILTER = 9;

// All tables of `root`, as objects with `filter(words)`, which returns how many rows match.
export function startTables(root) {
  return [...root.querySelectorAll(".tv-table")].map(tablesStart);
}

function tablesStart(box) {
  const body = box.querySelector("tbody");
  const rows = [...body.rows];
  const table = {
    box,
    body,
    heads: [...box.querySelectorAll("thead th")],
    original: rows,
    rows,
    texts: rows.map(tablesText),
    shown: rows.filter((row) => !row.classList.contains("tv-more")).length,
    isFolded: rows.some((row) => row.classList.contains("tv-more")),
    words: [],
    outer: [],
    sorted: null,
  };
  if (rows.length > 1) table.heads.forEach((head, column) => tablesAddSort(table, head, column));
  if (rows.length >= TABLES_LEAST_TO_FILTER) tablesAddFilter(table);
  if (table.isFolded) tablesAddFold(table);
  tablesAddColumns(table);
  tablesLayOut(table);
  return {
    box,
    // Only rows with all of these words; all rows where none has.
    filter(words) {
      const matching = table.texts.filter((text) => words.every((word) => text.includes(word))).length;
      table.outer = matching > 0 ? words : [];
      tablesLayOut(table);
      return matching;
    },
  };
}

// Rows in their order, without those that are filtered out; those beyond the first ones are folded.
function tablesLayOut(table) {
  const words = [...table.words, ...table.outer];
  const isFiltered = words.length > 0;
  const order = new Map(table.original.map((row, position) => [row, position]));
  let matching = 0;
  for (const row of table.rows) {
    const isMatch = words.every((word) => table.texts[order.get(row)].includes(word));
    row.hidden = !isMatch;
    row.classList.toggle("tv-away", table.isFolded && !isFiltered && matching >= table.shown);
    if (isMatch) matching += 1;
  }
  // The sums are those of the rows that come last by themselves.
  const isRestShown = table.isFolded && !isFiltered && !table.sorted;
  table.box.classList.toggle("tv-with-rest", isRestShown);
  if (table.count) table.count.textContent = isFiltered ? `${matching} of ${table.rows.length} rows` : "";
  if (table.more) {
    table.more.hidden = isFiltered;
    table.more.textContent = table.isFolded ? `Show all ${table.rows.length} rows` : `Show ${table.shown} rows`;
    table.more.setAttribute("aria-expanded", String(!table.isFolded));
  }
}

function tablesAddFold(table) {
  table.more = made("button", { type: "button", className: "tv-button tv-fold" });
  table.more.addEventListener("click", () => {
    table.isFolded = !table.isFolded;
    tablesLayOut(table);
  });
  table.box.querySelector(".tv-scroll").after(table.more);
}

// All texts of a row, also those of names that are shortened.
function tablesText(row) {
  const names = [...row.querySelectorAll(".tv-name")].map((name) => name.title);
  return [row.textContent, ...names].join(" ").toLowerCase();
}

// Rarely needed columns are behind a button.
function tablesAddColumns(table) {
  const rare = table.heads.flatMap((head, column) => (head.classList.contains("tv-rare") ? [column] : []));
  if (!rare.length) return;
  for (const row of table.box.querySelectorAll("tbody tr, tfoot tr")) {
    for (const column of rare) row.cells[column]?.classList.add("tv-rare");
  }
  const more = made("button", { type: "button", className: "tv-button tv-fold" });
  const show = (isFew) => {
    table.box.classList.toggle("tv-few", isFew);
    more.textContent = isFew ? `${rare.length} more columns` : "Fewer columns";
    more.setAttribute("aria-expanded", String(!isFew));
  };
  more.addEventListener("click", () => show(!table.box.classList.contains("tv-few")));
  show(true);
  (table.more ?? table.box.querySelector(".tv-scroll")).after(more);
}

function tablesAddFilter(table) {
  const title = table.box.querySelector("caption").textContent;
  const field = made("input", { type: "search", className: "tv-filter", placeholder: "Filter rows" });
  field.setAttribute("aria-label", `Filter rows of ${title}`);
  table.count = made("span", { className: "tv-count" });
  table.count.setAttribute("role", "status");
  field.addEventListener("input", () => {
    table.words = tablesWords(field.value);
    tablesLayOut(table);
  });
  table.box.querySelector(".tv-scroll").before(made("div", { className: "tv-table-tools" }, field, table.count));
}

// What was typed, as words that all have to be there.
export function tablesWords(text) {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

function tablesAddSort(table, head, column) {
  const button = made("button", { type: "button", className: "tv-sort" }, ...head.childNodes);
  const term = button.querySelector(".tv-term");
  if (term) {
    // One thing to focus, not two: the button takes over what the term means.
    button.title = term.title;
    term.removeAttribute("title");
    term.removeAttribute("tabindex");
  }
  head.append(button);
  button.addEventListener("click", () => tablesSort(table, head, column));
}

// By the largest number or the first word, then the other way round, then as the report has it.
function tablesSort(table, head, column) {
  const isNumber = head.classList.contains("tv-number");
  const first = isNumber ? "descending" : "ascending";
  const second = isNumber ? "ascending" : "descending";
  const before = head.getAttribute("aria-sort");
  const direction = before === null ? first : before === first ? second : null;
  for (const other of table.heads) other.removeAttribute("aria-sort");
  if (direction) head.setAttribute("aria-sort", direction);
  table.sorted = direction;
  table.rows = direction ? tablesSorted(table.original, column, isNumber, direction) : table.original;
  table.body.append(...table.rows);
  tablesLayOut(table);
  announce(direction ? `Sorted by ${head.textContent}, ${direction}` : "In the order of the report");
}

function tablesSorted(rows, column, isNumber, direction) {
  const sign = direction === "ascending" ? 1 : -1;
  const keyed = rows.map((row) => [tablesKey(row.cells[column], isNumber), row]);
  // What was not measured comes last, whichever way.
  keyed.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * (isNumber ? a - b : tablesCompare(a, b));
  });
  return keyed.map(([, row]) => row);
}

const tablesCompare = new Intl.Collator("en", { numeric: true }).compare;

function tablesKey(cell, isNumber) {
  if (!isNumber) return cell.textContent;
  return cell.dataset.value ? Number(cell.dataset.value) : null;
}
