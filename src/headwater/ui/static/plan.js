// The plan as a graph: boxes where the server says (layer and place), arrows between them, in lanes past the boxes of
// other layers. From left to right where there is room for it, a chain in several rows; else from top to bottom.

import { clock, count, el, seconds, short, size, svg } from "./format.js";

const WIDTH = 200, GAP_ALONG = 34, GAP_ACROSS = 18, GAP_ROWS = 46;
const LEAST_SCALE = 0.78;

export class Plan {
  constructor(place) {
    this.place = place;
    new ResizeObserver(() => this.graph && this.draw()).observe(place);
  }

  show(graph, job) {
    const same = JSON.stringify(graph) === JSON.stringify(this.graph);
    this.graph = graph;
    this.job = job;
    if (!same || !this.boxes) this.draw();
    else this.graph.boxes.forEach((box) => this.boxes.get(box.id).replaceChildren(...content(box, job)));
  }

  draw() {
    const room = this.place.clientWidth - 2 * parseFloat(getComputedStyle(this.place).paddingLeft);
    const layout = layoutFor(this.graph, room);
    const scale = Math.max(LEAST_SCALE, Math.min(1, room / layout.width));
    const canvas = el("div", { class: "canvas" }, arrows(this.graph, layout));
    this.boxes = new Map();
    for (const box of this.graph.boxes) {
      const made = el("div", { class: `box ${role(box)}`, title: `${box.kind} ${box.text}` }, ...content(box, this.job));
      const { x, y } = layout.corner(box);
      Object.assign(made.style, { left: `${x}px`, top: `${y}px`, width: `${WIDTH}px`, height: `${heightOf(box)}px` });
      this.boxes.set(box.id, made);
      canvas.append(made);
    }
    Object.assign(canvas.style, { width: `${layout.width}px`, height: `${layout.height}px`, transform: `scale(${scale})` });
    const frame = el("div", { class: "frame" }, canvas);
    Object.assign(frame.style, { width: `${layout.width * scale}px`, height: `${layout.height * scale}px` });
    this.place.replaceChildren(frame);
  }
}

function layoutFor(graph, room) {
  const straight = new Layout(graph, false);
  if (straight.width * LEAST_SCALE <= room) return straight;
  const perRow = Math.floor((room + GAP_ALONG) / (WIDTH + GAP_ALONG));
  // A plan that forks is easier to follow from top to bottom than with all its arrows across a fold.
  return graph.breadth === 1 && perRow > 1 ? new Folded(graph, perRow) : new Layout(graph, true);
}

// Coordinates. `along` is the way that rows go, `across` the other.
class Layout {
  constructor(graph, down) {
    this.down = down;
    const tallest = Math.max(...graph.boxes.map(heightOf));
    const thick = Array.from({ length: graph.layers }, (_, layer) =>
      down ? Math.max(...graph.boxes.filter((box) => box.layer === layer).map(heightOf), 0) : WIDTH);
    this.starts = [];
    let along = 0;
    for (const size of thick) { this.starts.push(along); along += size + GAP_ALONG; }
    this.thick = thick;
    this.unit = (down ? WIDTH : tallest) + GAP_ACROSS;
    const long = along - GAP_ALONG, wide = graph.breadth * this.unit - GAP_ACROSS;
    this.width = down ? wide : long;
    this.height = down ? long : wide;
  }

  across(place) { return place * this.unit - GAP_ACROSS / 2; }

  corner(box) {
    const middle = this.across(box.place);
    return this.down
      ? { x: middle - WIDTH / 2, y: this.starts[box.layer] + (this.thick[box.layer] - heightOf(box)) / 2 }
      : { x: this.starts[box.layer], y: middle - heightOf(box) / 2 };
  }

  // Where an arrow leaves a box, goes along its lanes, and arrives.
  way(from, to, via) {
    const half = (box) => (this.down ? heightOf(box) : WIDTH) / 2;
    const middle = (box) => this.starts[box.layer] + this.thick[box.layer] / 2;
    const points = [[middle(from) + half(from), this.across(from.place)]];
    for (const [layer, place] of via) points.push([this.starts[layer], this.across(place)], [this.starts[layer] + this.thick[layer], this.across(place)]);
    points.push([middle(to) - half(to) - 3, this.across(to.place)]);
    return path(points.map(([along, across]) => (this.down ? [across, along] : [along, across])), this.down);
  }
}

// A chain, one box per layer, from left to right in rows, as text is read.
class Folded {
  constructor(graph, most) {
    const rows = Math.ceil(graph.layers / most);
    this.perRow = Math.ceil(graph.layers / rows); // rows of like length, not a last one of a single box
    this.tops = [];
    this.height = -GAP_ROWS;
    for (let row = 0; row < rows; row++) {
      const tallest = Math.max(...graph.boxes.filter((box) => this.row(box) === row).map(heightOf));
      this.tops.push({ top: this.height + GAP_ROWS, tallest });
      this.height += GAP_ROWS + tallest;
    }
    this.width = this.perRow * (WIDTH + GAP_ALONG) - GAP_ALONG;
  }

  row(box) { return Math.floor(box.layer / this.perRow); }

  corner(box) {
    const { top, tallest } = this.tops[this.row(box)];
    return { x: (box.layer % this.perRow) * (WIDTH + GAP_ALONG), y: top + (tallest - heightOf(box)) / 2 };
  }

  way(from, to) {
    const [a, b] = [this.corner(from), this.corner(to)];
    const fold = this.row(from) !== this.row(to);
    const start = fold ? [a.x + WIDTH / 2, a.y + heightOf(from)] : [a.x + WIDTH, a.y + heightOf(from) / 2];
    const end = fold ? [b.x + WIDTH / 2, b.y - 3] : [b.x - 3, b.y + heightOf(to) / 2];
    if (!fold) return path([start, end], false);
    // Between the rows, past boxes that are taller than these two.
    const { top, tallest } = this.tops[this.row(from)];
    const between = top + tallest + GAP_ROWS / 2;
    return `M${start.join(" ")}V${between}H${end[0]}V${end[1]}`;
  }
}

function heightOf(box) {
  return 46 + (box.text ? 18 : 0) + (box.text.length > 26 ? 17 : 0) + (box.key ? 20 : 0) + (box.state ? 20 : 0) + (box.operator ? 58 : role(box) ? 22 : 0);
}

function role(box) {
  if (box.kind === "Write") return "sink";
  if (box.kind === "Scan" || box.kind === "Values") return "source";
  return box.operator ? "stateful" : "";
}

function arrows(graph, layout) {
  const head = svg("marker", { id: "head", viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, svg("path", { d: "M0 0L8 4L0 8Z" }));
  const boxes = new Map(graph.boxes.map((box) => [box.id, box]));
  const paths = graph.arrows.map(({ start, end, via }) =>
    svg("path", { class: "arrow", d: layout.way(boxes.get(start), boxes.get(end), via), "marker-end": "url(#head)" }));
  return svg("svg", { width: layout.width, height: layout.height, "aria-hidden": "true" }, svg("defs", {}, head), ...paths);
}

function path(points, down) {
  let text = `M${points[0].join(" ")}`;
  for (let i = 1; i < points.length; i++) {
    const [a, b] = [points[i - 1], points[i]];
    const middle = down ? (a[1] + b[1]) / 2 : (a[0] + b[0]) / 2;
    text += down ? `C${a[0]} ${middle} ${b[0]} ${middle} ${b.join(" ")}` : `C${middle} ${a[1]} ${middle} ${b[1]} ${b.join(" ")}`;
  }
  return text;
}

const NAMES = { I: "insert", UB: "update before", UA: "update after", D: "delete" };

function content(box, job) {
  const kinds = box.changes.split(",").map((kind) => el("span", { title: NAMES[kind] ?? kind }, kind));
  const key = box.key ? el("div", { class: "key", title: `key (${box.key})` }, `key (${box.key})`) : null;
  const state = box.state ? el("div", { class: "state", title: `state: ${box.state}` }, `state: ${box.state}`) : null;
  return [
    el("div", { class: "kind" }, el("span", {}, box.kind), el("span", { class: "kinds" }, ...kinds)),
    ...[box.text ? el("div", { class: "text" }, box.text) : null, key, state, el("div", { class: "figures" }, ...figures(box, job))].filter(Boolean),
  ];
}

function figures(box, job) {
  const operator = (job.operators ?? {})[box.operator];
  const parts = [];
  const add = (label, value) => parts.push(el("span", {}, el("b", {}, `${label} `), value));
  if (box.kind === "Write") add("rows", count(job.batches ? job.rows_out : 0));
  if (box.kind === "Scan" && (job.sources ?? []).length === 1) add("rows", count(job.rows_in));
  if (operator) {
    if (job.watermark !== null && /window|over|join/i.test(box.kind)) add("watermark", clock(job.watermark));
    if (operator.rows_in !== undefined) add("in", short(operator.rows_in));
    if (operator.rows_out !== undefined) add("out", short(operator.rows_out));
    if (operator.seconds) add("time", seconds(operator.seconds));
    if (operator.state_rows) add("state", `${short(operator.state_rows)} · ${size(operator.state_bytes)}`);
  }
  if (box.operator && !operator) parts.push(el("b", {}, "no batch yet"));
  return parts;
}
