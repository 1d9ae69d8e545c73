// Keep the page of a job up to date while the job is unfinished: header, curves, completions, log.
(() => {
  const PAUSE = 2000;
  const LONG_PAUSE = 20000;
  const job = document.getElementById("ns-job");
  const header = document.getElementById("ns-header");
  const samples = document.getElementById("ns-samples");
  const stale = document.getElementById("ns-stale");
  let after = -1;
  let restarts = "";
  let shownHeader = "";
  let newestSample = job.dataset.newestSample;

  async function refresh() {
    const finished = document.hidden ? false : await live();
    if (!document.hidden) await window.nsLog.update();
    if (finished && job.dataset.finished === "0") return window.location.reload();
    if (!finished) window.setTimeout(refresh, stale.hidden ? PAUSE : LONG_PAUSE);
    return undefined;
  }

  // Say why the page stands still: the session has ended, or nobody answers.
  function problem(response) {
    if (!response || response.status >= 500) return stale.dataset.silent;
    return response.redirected || !response.ok ? stale.dataset.signedOut : "";
  }

  async function live() {
    const response = await fetch(`${job.dataset.liveUrl}?after=${after}&restarts=${restarts}`).catch(() => null);
    stale.textContent = problem(response);
    stale.hidden = !stale.textContent;
    if (!stale.hidden) return false;
    const state = await response.json();
    if (state.fresh) window.nsCurves.clear();
    window.nsCurves.add(state.points);
    restarts = state.restarts;
    if (state.fresh) after = -1;
    if (state.points.length) after = state.points[state.points.length - 1].step;
    const inUse = header.contains(document.activeElement) || header.querySelector(":active");
    if (state.header !== shownHeader && !inUse) {
      shownHeader = state.header;
      header.innerHTML = state.header;
    }
    if (state.newest_sample !== newestSample) await newSamples(state.newest_sample);
    return state.finished;
  }

  // A reader who looks at an older step stays there.
  async function newSamples(newest) {
    const select = document.getElementById("ns-samples-at");
    const stays = select && select.value !== newestSample ? select.value : newest;
    newestSample = newest;
    await showSamples(stays);
  }

  async function showSamples(at) {
    const response = await fetch(`${job.dataset.samplesUrl}?at=${encodeURIComponent(at)}`).catch(() => null);
    if (response && response.ok && !response.redirected) samples.innerHTML = await response.text();
  }

  samples.addEventListener("change", async (event) => {
    if (event.target.id !== "ns-samples-at") return;
    await showSamples(event.target.value);
    document.getElementById("ns-samples-at")?.focus();
  });

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy);
    await navigator.clipboard?.writeText(source.textContent).catch(() => window.getSelection().selectAllChildren(source));
    const label = button.textContent;
    button.textContent = "✓";
    window.setTimeout(() => { button.textContent = label; }, 1200);
  });

  refresh();
})();
