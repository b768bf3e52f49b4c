// The report: tables that sort, filter and fold.

// Everything that the report's script does, in the document `root`.
export function startReport(root) {
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
