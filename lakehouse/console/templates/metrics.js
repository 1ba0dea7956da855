// Draws each panel from /metrics.json, which the console refreshes.
"use strict";
const EVERY = 10000;
const COLOURS = ["#2f6fde", "#c2571a", "#2b8a3e", "#a61e8c", "#b08800", "#0b7285", "#c92a2a", "#5f3dc4"];
const plots = new Map();

function shown(unit, value) {
  if (value == null) return "";
  if (unit === "percentunit") return `${(100 * value).toFixed(1)} %`;
  if (unit === "bytes" || unit === "Bps") {
    const power = value > 0 ? Math.min(5, Math.floor(Math.log2(value) / 10)) : 0;
    return `${+(value / 1024 ** power).toFixed(1)} ${["B", "KiB", "MiB", "GiB", "TiB", "PiB"][power]}${unit === "Bps" ? "/s" : ""}`;
  }
  return `${+value.toFixed(2)}${unit === "ops" ? "/s" : ""}`;
}

function draw(figure, panel) {
  figure.querySelector(".why").textContent = panel.why || (panel.series.length ? "" : "no values yet");
  const place = figure.querySelector(".plot");
  const names = JSON.stringify(panel.series.map((series) => series.name));
  const data = [panel.times, ...panel.series.map((series) => series.values)];
  const known = plots.get(figure);
  if (known && known.names === names) return known.plot.setData(data);
  if (known) known.plot.destroy();
  plots.delete(figure);
  if (!panel.series.length) return;
  const format = (_, value) => shown(figure.dataset.unit, value);
  const plot = new uPlot({
    width: place.clientWidth, height: 180, scales: {y: {range: (_, low, high) => [0, high > 0 ? high * 1.1 : 1]}},
    series: [{}, ...panel.series.map((series, index) => ({
      label: series.name, stroke: COLOURS[index % COLOURS.length], width: 1.5, value: format, points: {show: false},
    }))],
    axes: [{stroke: "currentColor"}, {stroke: "currentColor", size: 80, values: (_, ticks) => ticks.map((tick) => shown(figure.dataset.unit, tick))}],
  }, data, place);
  plots.set(figure, {plot, names});
}

async function renew() {
  if (!document.hidden) {
    try {
      const panels = await (await fetch("/metrics.json", {cache: "no-store", signal: AbortSignal.timeout(8000)})).json();
      document.querySelectorAll("figure").forEach((figure, index) => draw(figure, panels[index]));
      document.body.classList.remove("lost");
    } catch {
      document.body.classList.add("lost");
    }
  }
  setTimeout(renew, EVERY);
}

addEventListener("resize", () => {
  for (const [figure, {plot}] of plots) plot.setSize({width: figure.querySelector(".plot").clientWidth, height: 180});
});
renew();
