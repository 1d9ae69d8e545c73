// The curves of a job: one chart per kind of value, fed with new points only.
window.nsCurves = (() => {
  const KINDS = [
    ["accuracy", (name) => name === "accuracy" || name === "rewards/accuracies"],
    ["reward", (name) => name === "reward" || name === "reward_std" || /^(eval\/)?margin$/.test(name) || name.startsWith("rewards/")],
    ["value", (name) => name.startsWith("value/")],
    ["loss", (name) => name === "loss" || name.endsWith("_loss")],
    ["kl", (name) => name === "kl" || name === "approx_kl"],
    ["length", (name) => name === "completions/mean_length" || name === "completions/mean_terminated_length"],
    ["eval", (name) => /^eval\/(.*accuracy|loss)$/.test(name)],
    ["rate", (name) => name.endsWith("learning_rate")],
  ];
  const COLOURS = ["#9333ea", "#0891b2", "#d97706", "#16a34a", "#dc2626", "#64748b", "#db2777"];
  const place = document.getElementById("ns-curves");
  const charts = new Map();
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function chartOf(kind) {
    if (charts.has(kind)) return charts.get(kind);
    const box = document.createElement("div");
    const canvas = document.createElement("canvas");
    box.className = "ns-curve";
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", place.dataset[kind]);
    box.append(canvas);
    const after = KINDS.findIndex(([name]) => name === kind);
    const next = [...place.children].find((child) => Number(child.style.order) > after);
    box.style.order = after;
    place.insertBefore(box, next || null);
    const chart = new Chart(canvas, {
      type: "line",
      data: { datasets: [] },
      options: {
        animation: false,
        parsing: false,
        normalized: true,
        maintainAspectRatio: false,
        interaction: { mode: "nearest", axis: "x", intersect: false },
        scales: { x: { type: "linear", ticks: { precision: 0, maxTicksLimit: 8 } }, y: { ticks: { maxTicksLimit: 6, callback: (value) => String(Number(value.toPrecision(3))) } } },
        plugins: { title: { display: true, text: place.dataset[kind], align: "start" }, legend: { display: true, labels: { boxWidth: 10, boxHeight: 2 } } },
      },
    });
    charts.set(kind, chart);
    paint(chart);
    return chart;
  }

  function paint(chart) {
    const { options } = chart;
    const faint = style("--ns-faint");
    for (const axis of Object.values(options.scales)) {
      axis.ticks.color = faint;
      axis.grid = { color: style("--ns-line") };
    }
    options.plugins.title.color = style("--ns-strong");
    options.plugins.legend.labels.color = faint;
  }

  function line(chart, name) {
    let found = chart.data.datasets.find((dataset) => dataset.label === name);
    if (!found) {
      const colour = COLOURS[chart.data.datasets.length % COLOURS.length];
      found = { label: name, data: [], borderColor: colour, backgroundColor: colour, borderWidth: 1.5, pointRadius: 0, pointHitRadius: 8, tension: 0 };
      chart.data.datasets.push(found);
    }
    return found;
  }

  function add(points) {
    for (const { step, values } of points) {
      for (const [name, value] of Object.entries(values)) {
        const kind = KINDS.find(([, matches]) => matches(name));
        if (kind) line(chartOf(kind[0]), name).data.push({ x: step, y: value });
      }
    }
    for (const chart of charts.values()) {
      for (const dataset of chart.data.datasets) dataset.pointRadius = dataset.data.length < 30 ? 2 : 0;
      chart.options.plugins.legend.display = chart.data.datasets.length > 1;
      chart.update("none");
    }
    document.getElementById("ns-no-curves").hidden = charts.size > 0;
  }

  function clear() {
    for (const chart of charts.values()) chart.data.datasets = [];
  }

  new MutationObserver(() => charts.forEach((chart) => { paint(chart); chart.update("none"); }))
    .observe(document.documentElement, { attributes: true, attributeFilter: ["class"] });
  return { add, clear };
})();
