// Light or dark: as the system says, until the button is pressed. Nothing is stored.

export function startTheme(root) {
  const button = root.querySelector(".tv-theme");
  if (!button) return;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const show = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `${button.textContent} colours`);
  };
  // What draws on a canvas has to draw again.
  const tell = () => {
    show();
    root.dispatchEvent(new CustomEvent("traceviz:theme", { detail: { dark: isDark() } }));
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    root.documentElement.dataset.theme = isDark() ? "light" : "dark";
    tell();
  });
  system.addEventListener("change", tell);
  show();
}
