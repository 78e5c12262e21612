/**
 * Asks before something is destroyed, in place of the page that asks when there is no JavaScript.
 *
 * `<a href="/jobs/5/cancel" data-confirm="Cancel job bert?" data-confirm-detail="…" data-confirm-verb="Cancel job">`
 * leads to a page that says the same and holds a form posting to the same address. A submit button with
 * data-confirm posts its form with `confirmed=1`; without that field the server answers with the same page.
 */

const dialog = document.getElementById("confirm-dialog");

function ask(source, proceed) {
  const { confirm, confirmDetail = "", confirmVerb = "Continue", confirmTone = "danger" } = source.dataset;
  dialog.querySelector("[data-part=title]").textContent = confirm;
  dialog.querySelector("[data-part=detail]").textContent = confirmDetail;
  const verb = dialog.querySelector("[data-part=verb]");
  verb.textContent = confirmVerb;
  verb.className = `btn btn-${confirmTone === "danger" ? "danger" : "primary"}`;
  dialog.returnValue = "";
  dialog.onclose = () => {
    source.focus();
    if (dialog.returnValue === "yes") proceed();
  };
  dialog.showModal();
  dialog.querySelector("[data-part=dismiss]").focus();
}

function post(address) {
  const form = dialog.querySelector("form[data-part=post]");
  form.action = address;
  form.submit();
}

if (dialog) {
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-confirm]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    ask(link, () => post(link.href));
  });
  document.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (!button?.dataset.confirm || event.target.querySelector("input[name=confirmed]")) return;
    event.preventDefault();
    ask(button, () => {
      const field = Object.assign(document.createElement("input"), { type: "hidden", name: "confirmed", value: "1" });
      event.target.append(field);
      event.target.requestSubmit(button);
      // Where htmx answered in place the form stays, and the next time must ask again.
      setTimeout(() => field.remove());
    });
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
}
