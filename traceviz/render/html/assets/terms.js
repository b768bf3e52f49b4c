// What a figure means, where it is pointed at or has the focus. Without this script the browser shows the titles.
import { made } from "./dom.js";

const TERMS_GAP = 6;

export function startTerms(root) {
  const tip = made("div", { className: "tv-tip", id: "tv-tip", hidden: true });
  tip.setAttribute("role", "tooltip");
  root.body.append(tip);
  for (const term of root.querySelectorAll(".tv-term[title], .tv-sort[title], .tv-name[title]")) {
    if (!term.title) continue;
    term.dataset.meaning = term.title;
    term.removeAttribute("title");
  }
  const show = (event) => termsShow(tip, event.target);
  const hide = () => termsHide(root, tip);
  root.addEventListener("pointerover", (event) => (termsOf(event.target) ? show(event) : hide()));
  root.addEventListener("focusin", (event) => (termsOf(event.target) ? show(event) : hide()));
  root.addEventListener("focusout", hide);
  // What has the focus scrolls into sight, and its meaning with it.
  root.addEventListener("scroll", () => termsPlace(root, tip), { capture: true, passive: true });
  root.addEventListener("keydown", (event) => event.key === "Escape" && hide());
}

function termsOf(target) {
  return target instanceof Element ? target.closest("[data-meaning]") : null;
}

function termsShow(tip, target) {
  const term = termsOf(target);
  tip.textContent = term.dataset.meaning;
  tip.hidden = false;
  term.setAttribute("aria-describedby", tip.id);
  termsPlace(term.ownerDocument, tip);
}

function termsPlace(root, tip) {
  const term = root.querySelector("[aria-describedby=tv-tip]");
  if (tip.hidden || !term) return;
  const place = term.getBoundingClientRect();
  const size = tip.getBoundingClientRect();
  const isBelow = place.bottom + TERMS_GAP + size.height <= innerHeight;
  const left = Math.max(TERMS_GAP, Math.min(place.left, innerWidth - size.width - TERMS_GAP));
  tip.style.left = `${left}px`;
  tip.style.top = `${isBelow ? place.bottom + TERMS_GAP : place.top - TERMS_GAP - size.height}px`;
}

function termsHide(root, tip) {
  if (tip.hidden) return;
  tip.hidden = true;
  for (const term of root.querySelectorAll("[aria-describedby=tv-tip]")) term.removeAttribute("aria-describedby");
}
