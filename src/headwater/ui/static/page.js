// The page: asks the server every second and draws what it says. Nothing comes from anywhere else.

import { Charts } from "./charts.js";
import { clock, count, el, seconds, short, size, span } from "./format.js";
import { Plan } from "./plan.js";

const POLL = 1000;
const SPANS = [["5 min", 300], ["15 min", 900], ["1 h", 3600]];
const ENDED = ["finished", "stopped", "failed"];
const token = document.querySelector("meta[name=headwater-token]").content;
const $ = (id) => document.getElementById(id);

const page = { run: null, events: [], chosen: decodeURIComponent(location.hash.slice(1)), span: 0, samples: new Map(), graphs: new Map(), messages: [] };
const charts = new Charts($("charts"));
const plan = new Plan($("plan"));

async function ask(path) {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(5000) });
  if (!answer.ok) throw new Error(answer.statusText);
  return answer.json();
}

async function look() {
  try {
    const state = await ask(`/api/state?event=${page.events[0]?.number ?? 0}`);
    page.run = state.run;
    page.events = [...state.events.reverse(), ...page.events].slice(0, 500);
    if (!page.run.jobs.some((job) => job.name === page.chosen)) page.chosen = page.run.jobs[0]?.name ?? "";
    if (page.chosen) await lookAt(page.chosen);
    away(false);
  } catch {
    away(true);
  }
  if (page.run) draw();
  setTimeout(look, POLL);
}

async function lookAt(name) {
  const known = page.samples.get(name) ?? [];
  const since = known.at(-1)?.time ?? 0;
  const found = await ask(`/api/jobs/${encodeURIComponent(name)}?since=${since}`);
  const kept = known.filter((sample) => sample.time < since && sample.time > Date.now() / 1000 - 3700);
  page.samples.set(name, [...kept, ...found.samples]);
  page.graphs.set(name, found.plan);
  page.messages = found.messages ?? [];
}

function away(is) {
  $("away").hidden = !is;
  $("stop").disabled = is;
}

function draw() {
  const { run } = page;
  $("run").textContent = `${run.title} · process ${run.process} on ${run.host} · ${run.version}`;
  $("spark").hidden = !run.spark_ui || !$("away").hidden; // it ends with the run
  if (run.spark_ui) $("spark").href = run.spark_ui;
  $("jobs").replaceChildren(...(run.jobs.length ? run.jobs.map(card) : [el("p", { class: "empty" }, "Spark is starting; jobs follow.")]));
  drawEvents();
  const job = run.jobs.find((one) => one.name === page.chosen);
  $("job").hidden = !job;
  document.title = job ? `${job.status === "running" ? "" : `${job.status}: `}${job.name} – Headwater` : "Headwater";
  if (job) drawJob(job);
}

function card(job) {
  const fact = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));
  const facts = el("dl", {}, fact("in", `${short(job.rate_in)}/s`), fact("lag", short(job.lag)), fact("batch", seconds(job.batch_seconds)));
  const title = el("span", { class: "title" }, el("span", { class: "name" }, job.name), el("span", { class: `status ${job.status}` }, job.status));
  const button = el("button", { class: "job-card", type: "button", "aria-current": String(job.name === page.chosen), onclick: () => choose(job.name) }, title, facts);
  return el("div", { role: "listitem" }, button);
}

function choose(name) {
  page.chosen = name;
  history.replaceState(null, "", `#${encodeURIComponent(name)}`);
  lookAt(name).then(draw, () => away(true));
}

function drawJob(job) {
  $("job-name").textContent = job.name;
  const since = (job.ended ?? Date.now()) - job.started;
  const reads = job.sources.length ? `${job.sources.join(", ")} → ${job.table}` : job.table;
  $("job-facts").textContent = [reads, job.origin, `${job.ended ? "ran for" : "up"} ${span(since / 1000)}`, job.begins].filter(Boolean).join(" · ");
  $("job-note").hidden = !job.note;
  $("job-note").textContent = job.note;
  $("job-error").hidden = !job.error;
  $("job-error").textContent = job.error;
  $("stop").hidden = ENDED.includes(job.status);
  $("numbers").replaceChildren(...numbers(job));
  const chosen = page.span || fitting(since / 1000);
  $("spans").replaceChildren(...SPANS.map(([name, length]) =>
    el("button", { type: "button", "aria-pressed": String(chosen === length), onclick: () => { page.span = length; draw(); } }, name)));
  charts.show(page.samples.get(job.name) ?? [], Date.now() / 1000, chosen);
  if (page.graphs.has(job.name)) plan.show(page.graphs.get(job.name), job);
  drawMessages(job);
}

// As much as there is to see, until somebody chooses.
function fitting(age) {
  return (SPANS.find(([, length]) => age < length * 1.2) ?? SPANS.at(-1))[1];
}

function numbers(job) {
  const number = (label, value, more = "", style = "") =>
    el("div", { class: `number panel ${style}` }, el("div", { class: "label" }, label), el("div", { class: "value" }, value), el("div", { class: "more" }, more));
  const shown = [
    number("Rows in", `${short(job.rate_in)}/s`, `${count(job.rows_in)} in all`),
    number("Rows out", ...rowsOut(job)),
    number("Lag", short(job.lag), "messages"),
    number("Batch time", seconds(job.batch_seconds), lastBatch(job)),
    number("Latency", seconds(job.latency_seconds), "oldest row"),
    number("State", short(job.state_rows), size(job.state_bytes) || "rows"),
  ];
  if (job.watermark !== null) shown.push(number("Watermark", clock(job.watermark), new Date(job.watermark).toISOString().slice(0, 10)));
  if (job.bad_records) shown.push(number("Bad messages", count(job.bad_records), "left out", "warn"));
  if (job.late_rows) shown.push(number("Late rows", count(job.late_rows), "dropped", "warn"));
  return shown;
}

// A sink that cannot count its rows says so only with its first batch; until then there were none.
function rowsOut(job) {
  if (!job.batches) return ["0/s", "0 in all"];
  return job.rows_out === null ? ["–", "not counted"] : [`${short(job.rate_out)}/s`, `${count(job.rows_out)} in all`];
}

// How long ago, once it is worth telling: an idle job makes no batches.
function lastBatch(job) {
  if (!job.batches) return job.batch ? `none since batch ${count(job.batch)}` : "no batch yet";
  const ago = (Date.now() - job.committed) / 1000;
  return ago >= 60 && !job.ended ? `last ${span(ago)} ago` : `batch ${count(job.batch)}`;
}

function drawMessages(job) {
  const messages = page.messages;
  $("messages-section").hidden = !messages.length && !job.bad_records && !job.late_rows;
  const head = el("tr", {}, ...["time", "kind", "where", "problem", "payload"].map((name) => el("th", { scope: "col" }, name)));
  const rows = messages.map((m) =>
    el("tr", {},
      el("td", { class: "place" }, clock(m.time)), el("td", {}, m.kind), el("td", { class: "place" }, m.place),
      el("td", {}, m.problem), el("td", {}, el("code", {}, m.payload))));
  $("messages").replaceChildren(messages.length ? el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows)) : el("p", { class: "empty" }, "Their content is not known here."));
}

function drawEvents() {
  const line = (event) =>
    el("li", {}, el("time", { title: new Date(event.time).toISOString() }, clock(event.time)), el("span", { class: "who" }, event.job),
      el("span", { class: event.level === "error" ? "error-text" : event.level }, event.text));
  $("events").replaceChildren(...(page.events.length ? page.events.map(line) : [el("li", { class: "empty" }, "Nothing has happened yet.")]));
}

// A stop needs two clicks, the second one soon.
let sure = 0;
$("stop").addEventListener("click", async () => {
  if (!sure) {
    $("stop").classList.add("sure");
    $("stop").textContent = "Really stop?";
    sure = setTimeout(calm, 4000);
    return;
  }
  calm();
  $("stop").disabled = true;
  $("stop").textContent = "Stopping …";
  await fetch(`/api/jobs/${encodeURIComponent(page.chosen)}/stop`, { method: "POST", headers: { "X-Headwater-Token": token } }).catch(() => away(true));
});

function calm() {
  clearTimeout(sure);
  sure = 0;
  $("stop").classList.remove("sure");
  $("stop").textContent = "Stop";
}

// Light or dark as the system has it, or as chosen here.
const dark = matchMedia("(prefers-color-scheme: dark)");
const THEMES = ["auto", "light", "dark"];
function applyTheme() {
  const chosen = localStorage.getItem("headwater-theme") ?? "auto";
  document.documentElement.dataset.theme = chosen === "auto" ? (dark.matches ? "dark" : "light") : chosen;
  $("theme").textContent = `Theme: ${THEMES.includes(chosen) ? chosen : "auto"}`;
}
$("theme").addEventListener("click", () => {
  const chosen = localStorage.getItem("headwater-theme") ?? "auto";
  localStorage.setItem("headwater-theme", THEMES[(THEMES.indexOf(chosen) + 1) % THEMES.length]);
  applyTheme();
});
dark.addEventListener("change", applyTheme);
window.addEventListener("resize", () => page.run && draw());
applyTheme();
look();
