// Elements, and words for those who do not see the page.

// An element with properties and children; texts among the children stay texts.
export function made(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// Say something to readers of the screen.
export function announce(text) {
  document.querySelector(".tv-live").textContent = text;
}
