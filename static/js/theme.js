/* Light or dark before the first paint: a classic script in <head>, so that no page flashes. */
(() => {
  const KEY = "berth.theme";
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    try {
      const value = localStorage.getItem(KEY);
      return value === "light" || value === "dark" ? value : "auto";
    } catch {
      return "auto";
    }
  };
  const apply = () => {
    const theme = chosen();
    document.documentElement.dataset.bsTheme = theme === "auto" ? (dark.matches ? "dark" : "light") : theme;
    for (const input of document.querySelectorAll("input[name=theme]")) input.checked = input.value === theme;
  };
  apply();
  dark.addEventListener("change", apply);
  window.addEventListener("storage", (event) => event.key === KEY && apply());
  document.addEventListener("DOMContentLoaded", () => {
    apply();
    document.documentElement.classList.add("has-js");
  });
  document.addEventListener("change", (event) => {
    if (event.target.name !== "theme") return;
    try {
      localStorage.setItem(KEY, event.target.value);
    } catch {
      /* private mode: the choice lasts for this page */
    }
    apply();
  });
})();
