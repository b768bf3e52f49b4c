// The list of sections says which one is being read, and a link to something folded unfolds it.

export function startNavigation(root) {
  const links = new Map();
  for (const link of root.querySelectorAll(".tv-nav a")) {
    const section = root.getElementById(decodeURIComponent(link.hash.slice(1)));
    if (section) links.set(section, link);
  }
  const seen = new Set();
  // What is being read is what crosses a band below the top, where links scroll to.
  const band = { rootMargin: "-96px 0px -70% 0px" };
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) seen[isIntersecting ? "add" : "delete"](target);
    const first = [...links.keys()].find((section) => seen.has(section));
    if (!first) return;
    for (const [section, link] of links) navigationMark(link, section === first);
  }, band);
  for (const section of links.keys()) observer.observe(section);
  const unfold = () => {
    const target = root.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) target.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();
}

function navigationMark(link, isCurrent) {
  if (isCurrent === link.hasAttribute("aria-current")) return;
  if (!isCurrent) {
    link.removeAttribute("aria-current");
    return;
  }
  link.setAttribute("aria-current", "true");
  const list = link.closest("ul"); // on a narrow page the list is one line: what is read stays in sight
  const { left, width } = link.getBoundingClientRect();
  if (list.scrollWidth > list.clientWidth) list.scrollLeft += left + width / 2 - innerWidth / 2;
}
