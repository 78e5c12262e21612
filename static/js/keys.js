/**
 * Keyboard shortcuts and small page manners: "/" searches, "g j" and alike go to what carries
 * `data-keys="g j"`, "?" lists them, `data-copy` copies, `data-dismiss` removes, a submitted form cannot be sent twice by a double click.
 */

const WAIT_MS = 900;
let pending = "";
let timer = 0;

function isTyping(target) {
  return target.closest?.("input, textarea, select, [contenteditable=true], dialog[open]");
}

/** What keys reach: the whole page, or what covers it. */
function scope() {
  return document.querySelector(".logview-full") ?? document;
}

function follow(keys) {
  const target = scope().querySelector(`[data-keys="${CSS.escape(keys)}"]`);
  if (!target) return false;
  if (target.matches("input")) {
    target.focus();
    target.select();
  } else target.click();
  return true;
}

function listShortcuts() {
  const dialog = document.getElementById("keys-dialog");
  if (!dialog) return;
  const list = dialog.querySelector("dl");
  list.replaceChildren();
  const listed = new Set();
  for (const target of scope().querySelectorAll("[data-keys]")) {
    if (listed.has(target.dataset.keys)) continue; // the first one is what the keys reach
    listed.add(target.dataset.keys);
    const [term, words] = [document.createElement("dt"), document.createElement("dd")];
    for (const key of target.dataset.keys.split(" ")) {
      term.append(Object.assign(document.createElement("kbd"), { textContent: key }));
    }
    words.textContent = target.getAttribute("aria-label") || target.textContent.trim();
    list.append(term, words);
  }
  dialog.showModal();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isTyping(event.target)) return;
  if (event.key === "?") {
    event.preventDefault();
    listShortcuts();
    return;
  }
  clearTimeout(timer);
  const keys = pending ? `${pending} ${event.key}` : event.key;
  pending = "";
  if (follow(keys)) event.preventDefault();
  else if (scope().querySelector(`[data-keys^="${CSS.escape(event.key)} "]`)) {
    pending = event.key;
    timer = setTimeout(() => (pending = ""), WAIT_MS);
  }
});

document.addEventListener("click", async (event) => {
  const opener = event.target.closest("[data-open-dialog]");
  if (opener) {
    if (opener.dataset.openDialog === "keys-dialog") listShortcuts();
    else document.getElementById(opener.dataset.openDialog)?.showModal();
  }
  event.target.closest("[data-dismiss]")?.parentElement.remove();
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  const said = button.querySelector("[data-part=label]") ?? button;
  const before = said.textContent;
  try {
    await navigator.clipboard.writeText(source?.innerText ?? button.dataset.copyText ?? "");
    said.textContent = "Copied";
  } catch {
    said.textContent = "Could not copy";
  }
  setTimeout(() => (said.textContent = before), 1500);
});

// A chosen filter counts at once; the button stays for those without JavaScript.
document.addEventListener("change", (event) => {
  if (event.target.matches("form.filters select")) event.target.form.requestSubmit();
});

// RW-039: a double click must not send a form twice. Released on return from the back-forward cache.
document.addEventListener("submit", (event) => {
  if (event.defaultPrevented || event.target.method !== "post") return;
  setTimeout(() => event.submitter?.setAttribute("aria-disabled", "true"));
  if (event.target.dataset.sent) event.preventDefault();
  event.target.dataset.sent = "1";
  setTimeout(() => release(event.target), 5000);
});

function release(form) {
  delete form.dataset.sent;
  for (const button of form.querySelectorAll("[aria-disabled=true]")) button.removeAttribute("aria-disabled");
}

window.addEventListener("pageshow", () => document.querySelectorAll("form[data-sent]").forEach(release));
