// The form of jobs and saved configs: change of type, live preview of the command, path picker, data check. Works without it, too.
(() => {
  const form = document.getElementById("ns-form");
  const byId = (id) => document.getElementById(id);
  const token = () => form.querySelector("[name=csrfmiddlewaretoken]").value;
  document.documentElement.classList.add("ns-js");

  if (document.activeElement === document.body) (byId("ns-type") || form.elements.name).focus({ preventScroll: true });
  byId("ns-type")?.addEventListener("change", () => form.requestSubmit(byId("ns-reload")));
  byId("ns-config")?.addEventListener("change", (event) => event.target.value && event.target.form.submit());

  // What a form hides is not submitted.
  function showWhatApplies() {
    const folder = form.querySelector("[data-field=start_folder]");
    const rule = form.querySelector("[data-field=dependency_rule]");
    if (!folder) return;
    const toggle = (field, shown) => {
      field.hidden = !shown;
      field.querySelectorAll("input, select").forEach((input) => { input.disabled = !shown; });
    };
    toggle(folder, form.elements.start_from.value === "folder");
    toggle(rule, form.elements.depends_on.value !== "");
  }
  form.addEventListener("change", showWhatApplies);
  showWhatApplies();

  async function answer(address, options) {
    const response = await fetch(address, options).catch(() => null);
    if (!response || response.redirected || response.status === 403) return { error: form.dataset.signedOut };
    return response.json().catch(() => ({ error: response.statusText }));
  }

  // Preview
  const preview = byId("ns-preview");
  let timer = 0;
  let newest = 0;
  async function showCommand() {
    const mine = ++newest;
    const { command, errors, error } = await answer(form.dataset.previewUrl, { method: "POST", body: new FormData(form) });
    if (mine !== newest) return;
    preview.classList.toggle("ns-bad", !command);
    if (command) window.nsCommand(preview, command);
    else preview.textContent = error || Object.entries(errors).map(([name, texts]) => `${name}: ${texts.join(" ")}`).join("\n");
  }
  if (preview) {
    form.addEventListener("input", () => {
      window.clearTimeout(timer);
      timer = window.setTimeout(showCommand, 300);
    });
  }

  // Picker
  const picker = byId("ns-picker");
  let target = null;
  let here = "";

  function choose(path) {
    target.value = path;
    picker.close();
    target.focus();
    target.dispatchEvent(new Event("input", { bubbles: true }));
  }

  function row(text, icon, act) {
    const item = document.createElement("li");
    const button = document.createElement("button");
    const symbol = document.createElement("span");
    button.type = "button";
    symbol.className = "material-symbols-outlined";
    symbol.setAttribute("aria-hidden", "true");
    symbol.textContent = icon;
    button.append(symbol, text);
    button.addEventListener("click", act);
    item.append(button);
    return item;
  }

  async function open(under, why = "") {
    const kind = target.dataset.pathKind;
    const found = await answer(`${form.dataset.folderUrl}?under=${encodeURIComponent(under)}`);
    byId("ns-picker-error").textContent = found.error || why;
    if (found.error) return under ? open("", found.error) : undefined;
    here = found.here;
    byId("ns-picker-here").textContent = here;
    byId("ns-picker-use").hidden = kind === "file" || !here;
    byId("ns-picker-upload").hidden = kind !== "file";
    const rows = found.parent === null ? [] : [row("..", "arrow_upward", () => open(found.parent))];
    for (const entry of found.entries) {
      if (entry.folder) rows.push(row(entry.name, "folder", () => open(entry.path)));
      else if (kind === "file") rows.push(row(entry.name, "description", () => choose(entry.path)));
    }
    byId("ns-picker-list").replaceChildren(...rows);
    return undefined;
  }

  form.addEventListener("click", (event) => {
    const button = event.target.closest("[data-pick]");
    if (!button) return;
    target = byId(button.dataset.pick);
    picker.showModal();
    open(target.value || target.placeholder);
  });
  picker.querySelector("[data-close]").addEventListener("click", () => picker.close());
  byId("ns-picker-use").addEventListener("click", () => choose(here));
  const chooser = byId("ns-picker-upload").querySelector("input");
  chooser.hasChangeListener = true; // the theme's own listener wants a text input beside it
  chooser.addEventListener("change", async (event) => {
    const body = new FormData();
    body.append("file", event.target.files[0]);
    event.target.value = "";
    const kept = await answer(form.dataset.uploadUrl, { method: "POST", body, headers: { "X-CSRFToken": token() } });
    if (kept.path) choose(kept.path);
    else byId("ns-picker-error").textContent = kept.error;
  });

  // Data check: a piece of page that the server writes, below the field
  async function check(button) {
    const panel = byId(`ns-check-${button.dataset.check}`) || document.createElement("div");
    panel.id = `ns-check-${button.dataset.check}`;
    panel.className = "ns-check-panel";
    panel.setAttribute("aria-live", "polite");
    button.closest(".ns-grid").after(panel);
    panel.textContent = form.dataset.checking;
    panel.scrollIntoView({ block: "nearest" }); // the bar at the bottom would hide it
    button.disabled = true;
    const body = new FormData(form);
    body.append("check", button.dataset.check);
    const response = await fetch(form.dataset.checkUrl, { method: "POST", body }).catch(() => null);
    button.disabled = false;
    if (!response || response.redirected || !response.ok) panel.textContent = form.dataset.signedOut;
    else panel.innerHTML = await response.text();
    panel.scrollIntoView({ block: "nearest" });
  }
  form.addEventListener("click", (event) => {
    const button = event.target.closest("[data-check]");
    if (button) check(button);
    event.target.closest("[data-close-check]")?.closest(".ns-check-panel").remove();
  });
})();
