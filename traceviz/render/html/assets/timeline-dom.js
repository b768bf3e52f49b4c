// Elements for the parts of the timeline that are not drawn: texts of traces go into textContent only.

// An element with attributes and children; texts become text nodes.
export function timelineElement(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// A table: `columns` are {text, number}, rows are arrays of texts or elements, the first of them the row's heading.
export function timelineTable(caption, columns, rows) {
  const cell = (tag, content, number, scope) =>
    timelineElement(tag, { class: number ? "tv-number" : null, scope }, ...[content].flat());
  const head = timelineElement("tr", {}, ...columns.map(({ text, number }) => cell("th", text, number, "col")));
  const body = rows.map((row) => {
    const [first, ...rest] = row;
    const others = rest.map((content, position) => cell("td", content, columns[position + 1].number, null));
    return timelineElement("tr", {}, cell("th", first, columns[0].number, "row"), ...others);
  });
  return timelineElement(
    "table", { class: "tv-timeline-table" },
    timelineElement("caption", {}, caption), timelineElement("thead", {}, head), timelineElement("tbody", {}, ...body),
  );
}

export function colorSwatch(color) {
  const swatch = timelineElement("span", { class: "tv-timeline-swatch", "aria-hidden": "true" });
  swatch.style.backgroundColor = color;
  return swatch;
}
