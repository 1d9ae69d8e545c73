// Refresh the rows of the job list every five seconds while something on the page is unfinished.
(() => {
  const UNFINISHED = "[data-unfinished]";
  const PAUSE = 5000;

  async function refresh() {
    const table = document.getElementById("result_list");
    if (!table) return;
    if (table.querySelector(UNFINISHED) && !document.hidden && !table.contains(document.activeElement)) {
      const response = await fetch(window.location.href, { headers: { "X-Requested-With": "fetch" } }).catch(() => null);
      if (response && response.ok && !response.redirected) {
        const page = new DOMParser().parseFromString(await response.text(), "text/html");
        const fresh = page.getElementById("result_list");
        if (fresh) table.replaceChildren(...fresh.children);
      }
    }
    window.setTimeout(refresh, PAUSE);
  }

  window.addEventListener("load", () => window.setTimeout(refresh, PAUSE));
})();
