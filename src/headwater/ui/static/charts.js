// Charts of the last hour: one SVG each, with a cursor that shows the values of a moment.

import { clock, el, seconds, short, svg } from "./format.js";

const BUCKET = 5;
const HEIGHT = 150, LEFT = 52, RIGHT = 6, TOP = 8, BOTTOM = 20;
const NO_REPORT = "nothing reported yet", NO_BATCH = "no batch in this time";

const CHARTS = [
  {
    title: "Throughput", unit: "rows/s", write: short, nothing: NO_REPORT,
    series: [
      { name: "in", style: "s-in", of: (s, step) => s.rows_in / step, idle: 0 },
      { name: "out", style: "s-out", of: (s, step) => s.rows_out / step, idle: 0 },
    ],
  },
  { title: "Lag", unit: "messages", write: short, nothing: NO_REPORT, series: [{ name: "lag", style: "s-lag", of: (s) => s.lag, idle: "keep" }] },
  {
    title: "Batch time", unit: "longest", write: seconds, nothing: NO_BATCH,
    series: [{ name: "batch", style: "s-time", of: (s) => (s.batches ? s.batch_seconds : null), idle: null }],
  },
  {
    title: "Latency", unit: "oldest row", write: seconds, nothing: NO_BATCH,
    series: [{ name: "latency", style: "s-latency", of: (s) => (s.batches ? s.latency_seconds : null), idle: null }],
  },
];

// Samples are there only for times at which something was reported. Over a longer span, several make one point.
function evenly(samples, from, to, step, series) {
  const points = [];
  let index = 0, last = null;
  for (let time = from; time < to; time += step) {
    const here = [];
    for (; index < samples.length && samples[index].time < time + step; index++) {
      last = samples[index];
      if (last.time >= time) here.push(last);
    }
    points.push({ time, value: here.length ? series.of(together(here), step) : idle(series, last, step) });
  }
  return points;
}

function idle(series, last, step) {
  if (!last) return null;
  return series.idle === "keep" ? series.of(last, step) : series.idle;
}

function together(samples) {
  const sum = (name) => samples.reduce((total, s) => total + s[name], 0);
  const most = (name) => Math.max(...samples.map((s) => s[name]));
  return {
    rows_in: sum("rows_in"), rows_out: sum("rows_out"), batches: sum("batches"), lag: most("lag"),
    batch_seconds: most("batch_seconds"), latency_seconds: most("latency_seconds"),
  };
}

// Half of it is labelled too, and one digit must be enough for that: half of 2.5 s would be written as 1.3 s.
function niceTop(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 6, 8, 10].map((step) => step * power).find((top) => top >= value) ?? value;
}

export class Charts {
  constructor(place) {
    this.views = CHARTS.map((chart) => new Chart(chart));
    place.replaceChildren(...this.views.map((view) => view.element));
  }

  show(samples, now, spanSeconds) {
    const step = Math.max(BUCKET, spanSeconds / 60);
    const to = Math.floor(now / step) * step; // the bucket that is not over yet would look like a drop
    for (const view of this.views) view.show(samples, to - spanSeconds, to, step);
  }
}

class Chart {
  constructor(chart) {
    this.chart = chart;
    this.legend = el("span", { class: "legend" });
    this.svg = svg("svg", { role: "img", "aria-label": chart.title, preserveAspectRatio: "none" });
    const head = el("header", {}, el("span", {}, el("strong", {}, chart.title), el("span", { class: "muted" }, ` ${chart.unit}`)), this.legend);
    this.element = el("article", { class: "chart panel" }, head, this.svg);
    this.at = null;
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => { this.at = null; this.draw(); });
  }

  point(event) {
    const box = this.svg.getBoundingClientRect();
    this.at = (event.clientX - box.left - LEFT) / Math.max(1, box.width - LEFT - RIGHT);
    this.draw();
  }

  show(samples, from, to, step) {
    this.lines = this.chart.series.map((series) => ({ series, points: evenly(samples, from, to, step, series) }));
    this.from = from;
    this.to = to - step;
    this.draw();
  }

  draw() {
    if (!this.lines) return;
    const width = this.svg.clientWidth || 320;
    const values = this.lines.flatMap((line) => line.points.map((p) => p.value)).filter((v) => v !== null);
    const top = niceTop(Math.max(0, ...values));
    const x = (time) => LEFT + ((time - this.from) / (this.to - this.from)) * (width - LEFT - RIGHT);
    const y = (value) => TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    if (!values.length) return this.empty(width);
    this.svg.replaceChildren(...this.grid(width, top, x, y), ...this.lines.flatMap((line) => drawn(line, x, y)), ...this.cursor(x, y));
    this.legend.replaceChildren(...this.lines.map((line) => this.label(line)));
  }

  // An axis without a line would look as if something were broken.
  empty(width) {
    this.svg.replaceChildren(svg("text", { class: "nothing", x: width / 2, y: HEIGHT / 2, "text-anchor": "middle" }, this.chart.nothing));
    this.legend.replaceChildren();
  }

  grid(width, top, x, y) {
    const parts = [];
    for (const value of [0, top / 2, top]) {
      parts.push(svg("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }));
      const text = value === 0 ? "0" : this.chart.write(value);
      parts.push(svg("text", { x: LEFT - 7, y: y(value) + 4, "text-anchor": "end" }, text));
    }
    const steps = width > 420 ? 4 : 2;
    for (let i = 0; i <= steps; i++) {
      const time = this.from + ((this.to - this.from) * i) / steps;
      const anchor = i === 0 ? "start" : i === steps ? "end" : "middle";
      parts.push(svg("text", { x: x(time), y: HEIGHT - 4, "text-anchor": anchor }, clock(time * 1000).slice(0, 5)));
    }
    return parts;
  }

  chosen(line) {
    const points = line.points;
    if (this.at === null || this.at < 0) return [...points].reverse().find((p) => p.value !== null) ?? null;
    return points[Math.min(points.length - 1, Math.round(this.at * (points.length - 1)))];
  }

  label(line) {
    const point = this.chosen(line);
    const value = point && point.value !== null ? (point.value === 0 ? "0" : this.chart.write(point.value)) : "–";
    const name = this.lines.length > 1 ? `${line.series.name} ` : "";
    const when = this.at !== null && this.at >= 0 && point ? `${clock(point.time * 1000)}  ` : "";
    return el("span", { class: line.series.style }, el("i"), el("span", { class: "muted" }, `${line === this.lines[0] ? when : ""}${name}${value}`));
  }

  cursor(x, y) {
    if (this.at === null || this.at < 0 || this.at > 1) return [];
    const parts = [];
    for (const line of this.lines) {
      const point = this.chosen(line);
      if (!parts.length) parts.push(svg("line", { class: "cursor", x1: x(point.time), x2: x(point.time), y1: TOP, y2: HEIGHT - BOTTOM }));
      if (point.value !== null) parts.push(svg("g", { class: line.series.style }, svg("circle", { class: "dot", cx: x(point.time), cy: y(point.value), r: 3 })));
    }
    return parts;
  }
}

function drawn(line, x, y) {
  const pieces = [];
  let piece = [];
  for (const point of line.points) {
    if (point.value === null && line.series.idle !== null) { if (piece.length) pieces.push(piece); piece = []; }
    else if (point.value !== null) piece.push(point); // batch times are joined over the time without a batch
  }
  if (piece.length) pieces.push(piece);
  return pieces.map((points) => {
    const path = points.map((p, i) => `${i ? "L" : "M"}${x(p.time).toFixed(1)} ${y(p.value).toFixed(1)}`).join("");
    const area = `${path}L${x(points.at(-1).time).toFixed(1)} ${y(0)}L${x(points[0].time).toFixed(1)} ${y(0)}Z`;
    const dot = points.length === 1 ? svg("circle", { class: "dot", cx: x(points[0].time), cy: y(points[0].value), r: 2 }) : null;
    return svg("g", { class: line.series.style }, svg("path", { class: "area", d: area }), svg("path", { class: "line", d: path }), dot);
  });
}

