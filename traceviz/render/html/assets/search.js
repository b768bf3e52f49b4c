// One field for the whole page: sections without its words go, and tables show the rows that have them.
import { tablesWords } from "./tables.js";

export function startSearch(root, tables) {
  const field = root.querySelector(".tv-search");
  const count = root.querySelector(".tv-search-count");
  if (!field) return;
  const sections = [...root.querySelectorAll("main > .tv-section")].map((section) => ({
    section,
    title: (section.querySelector("h2")?.textContent ?? "").toLowerCase(),
    text: section.textContent.toLowerCase(),
    link: root.querySelector(`.tv-nav a[href="#${CSS.escape(section.id)}"]`)?.parentElement,
    tables: tables.filter((table) => section.contains(table.box)),
  }));
  const search = () => {
    const words = tablesWords(field.value);
    const left = sections.filter((entry) => searchIn(entry, words)).length;
    count.textContent = words.length > 0 ? `${left} of ${sections.length} sections` : "";
  };
  field.parentElement.hidden = false;
  field.addEventListener("input", search);
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    field.value = "";
    search();
  });
  root.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || searchIsTyping(event.target)) return;
    event.preventDefault();
    field.focus();
  });
}

// Show the section if it has the words; of one whose title has not, the rows that do.
function searchIn({ section, title, text, link, tables }, words) {
  const isLeft = words.every((word) => text.includes(word));
  const isTitle = words.every((word) => title.includes(word));
  section.hidden = !isLeft;
  if (link) link.hidden = !isLeft;
  for (const table of tables) table.filter(isLeft && !isTitle ? words : []);
  return isLeft;
}

function searchIsTyping(target) {
  return target instanceof HTMLElement && (target.matches("input, textarea, select") || target.isContentEditable);
}
