// The report: what a reader can do with it beyond reading.
import { startCopying } from "./copy.js";
import { startNavigation } from "./navigation.js";
import { startPrinting } from "./printing.js";
import { startSearch } from "./search.js";
import { startTables } from "./tables.js";
import { startTerms } from "./terms.js";
import { startTheme } from "./theme.js";

// Everything that the report's script does, in the document `root`.
export function startReport(root) {
  const tables = startTables(root);
  startSearch(root, tables);
  startTerms(root);
  startCopying(root);
  startTheme(root);
  startNavigation(root);
  startPrinting(root);
  for (const button of root.querySelectorAll(".tv-show")) reportOffersPlace(button);
}

// A button of a finding asks the timeline to show where it is.
function reportOffersPlace(button) {
  const { start, end, lane } = button.dataset;
  button.hidden = false;
  button.addEventListener("click", () => {
    const detail = { start: Number(start), end: Number(end), lane };
    document.dispatchEvent(new CustomEvent("traceviz:show", { detail }));
  });
}
