// On paper nothing can be unfolded: what is folded opens before, and closes again after.

export function startPrinting(root) {
  let opened = [];
  matchMedia("print").addEventListener("change", ({ matches }) => {
    if (matches) opened = [...root.querySelectorAll("details:not([open])")];
    for (const details of opened) details.open = matches;
  });
}
