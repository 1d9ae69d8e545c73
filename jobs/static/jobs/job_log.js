// The log of a job: only new bytes travel; the text is text, never markup.
window.nsLog = (() => {
  const job = document.getElementById("ns-job");
  const box = document.getElementById("ns-log");
  const search = document.getElementById("ns-log-search");
  const found = document.getElementById("ns-log-found");
  const follow = document.getElementById("ns-log-follow");
  let offset = Number(job.dataset.logStart);
  let text = "";

  async function part() {
    const response = await fetch(`${job.dataset.logUrl}?offset=${offset}`).catch(() => null);
    if (!response || !response.ok) return false;
    const next = Number(response.headers.get("X-Next-Offset"));
    const more = next > offset;
    offset = next;
    const added = await response.text();
    text += added;
    show(added);
    return more && next < Number(response.headers.get("X-Log-Size"));
  }

  async function update() {
    while (await part());
    if (!text) box.textContent = box.dataset.empty;
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
    found.textContent = String(lines.length);
  }

  search.addEventListener("input", highlight);
  document.getElementById("ns-log-all")?.addEventListener("click", async (event) => {
    event.target.remove();
    offset = 0;
    text = "";
    box.textContent = "";
    await update();
  });
  return { update };
})();
