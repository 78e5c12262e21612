/** Tooltips for `data-tip` (GPU squares and other marks without words of their own); texts only, one at a time. */

const tip = Object.assign(document.createElement("div"), { className: "tip", hidden: true });
tip.setAttribute("role", "tooltip");
document.body.append(tip);
let owner = null;

function show(element) {
  owner = element;
  tip.textContent = element.dataset.tip;
  tip.hidden = false;
  const box = element.getBoundingClientRect();
  const left = Math.max(8, Math.min(box.left, innerWidth - tip.offsetWidth - 8));
  const above = box.top - tip.offsetHeight - 8;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 8 ? above : box.bottom + 8}px`;
}

function hide() {
  owner = null;
  tip.hidden = true;
}

document.addEventListener("pointerover", (event) => {
  const element = event.target.closest?.("[data-tip]");
  if (element && element !== owner) show(element);
  else if (!element && owner) hide();
});
document.addEventListener("focusin", (event) => event.target.matches?.("[data-tip]") && show(event.target));
document.addEventListener("focusout", hide);
document.addEventListener("scroll", hide, { capture: true, passive: true });
document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
document.addEventListener("htmx:after:swap", () => owner && !owner.isConnected && hide());
