// The log of a job: only new bytes travel; the text is text, never markup.
window.nsLog = (() => {
  const byId = (id) => document.getElementById(id);
  const job = byId("ns-job");
  const box = byId("ns-log");
  const search = byId("ns-log-search");
  const found = byId("ns-log-found");
  const follow = byId("ns-log-follow");
  let offset = Number(job.dataset.logStart);
  let text = "";

  async function part() {
    const response = await fetch(`${job.dataset.logUrl}?offset=${offset}`).catch(() => null);
    if (!response || !response.ok || response.redirected) return false;
    const added = await response.text().catch(() => null);
    if (added === null) return false;
    const next = Number(response.headers.get("X-Next-Offset"));
    const more = next > offset;
    offset = next;
    text += added;
    show(added);
    return more && next < Number(response.headers.get("X-Log-Size"));
  }

  // One after the other: two that ask at once would both add the same part.
  let reading = Promise.resolve();
  function update() {
    reading = reading.then(async () => {
      while (await part());
      if (!text) box.textContent = box.dataset.empty;
    });
    return reading;
  }

  function show(added) {
    if (search.value) return highlight();
    if (text === added) box.textContent = "";
    if (added) box.append(added);
    if (added && follow.checked) box.scrollTop = box.scrollHeight;
    return undefined;
  }

  // Only the lines that contain the words are shown while something is searched.
  function highlight() {
    const words = search.value.toLowerCase();
    found.textContent = "";
    if (!words) {
      box.textContent = text;
      if (follow.checked) box.scrollTop = box.scrollHeight;
      return;
    }
    const lines = text.split("\n").filter((line) => line.toLowerCase().includes(words));
    const nodes = [];
    for (const line of lines.slice(-5000)) {
      const at = line.toLowerCase().indexOf(words);
      const mark = document.createElement("mark");
      mark.textContent = line.slice(at, at + words.length);
      nodes.push(line.slice(0, at), mark, `${line.slice(at + words.length)}\n`);
    }
    box.replaceChildren(...nodes);
    found.textContent = byId("ns-log-all") ? `${lines.length} · ${found.dataset.partial}` : String(lines.length);
  }

  search.addEventListener("input", highlight);
  byId("ns-log-all")?.addEventListener("click", (event) => {
    event.target.remove();
    reading = reading.then(() => {
      offset = 0;
      text = "";
      box.textContent = "";
    });
    update();
  });
  return { update };
})();
