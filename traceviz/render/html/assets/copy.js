// A button per section copies the command that prints its figures, in the span of time that is selected.
import { announce, made } from "./dom.js";

const COPY_SAID_MS = 1500;
let copyWindow = "";

export function startCopying(root) {
  const command = root.body.dataset.command;
  if (!command) return;
  root.addEventListener("traceviz:window", (event) => {
    const { start, end } = event.detail ?? {};
    const isSpan = Number.isFinite(start) && Number.isFinite(end);
    copyWindow = isSpan ? ` --from ${copySeconds(start)} --to ${copySeconds(end)}` : "";
  });
  for (const section of root.querySelectorAll("[data-section]")) copyOffer(section, command);
}

function copyOffer(section, command) {
  const heading = section.querySelector("h2");
  const button = made("button", { type: "button", className: "tv-button tv-copy" }, "Copy command");
  button.setAttribute("aria-label", `Copy the command that prints ${heading.textContent}`);
  button.addEventListener("click", async () => {
    const text = `${command} --section ${section.dataset.section}${copyWindow}`;
    const isCopied = await copyText(text);
    announce(isCopied ? `Copied: ${text}` : `Copying is not allowed here. The command is: ${text}`);
    button.textContent = isCopied ? "Copied" : text;
    if (isCopied) setTimeout(() => (button.textContent = "Copy command"), COPY_SAID_MS);
  });
  heading.after(button);
}

// Nanoseconds as seconds that the command line reads back exactly: "1.25s".
function copySeconds(nanoseconds) {
  const whole = BigInt(Math.round(nanoseconds));
  const rest = String(whole % 1_000_000_000n).padStart(9, "0").replace(/0+$/, "");
  return `${whole / 1_000_000_000n}${rest && `.${rest}`}s`;
}

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text); // a page from a file may have no clipboard
  }
}

function copyBySelection(text) {
  const focused = document.activeElement;
  const field = made("textarea", { value: text, className: "tv-unseen" });
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  focused?.focus();
  return isCopied;
}
