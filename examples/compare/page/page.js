// Asks for snapshots, draws them, and sends commands. What is drawn by d3 is in charts.js.
"use strict";

const kPollMs = 500, kDetailsMs = 1000;
const kBlock = ["offset", "bytes", "from", "to", "name", "category", "ending", "age", "storage",
                "before", "reason"];

const page = {now: null, chosen: null, choices: {policies: [], filters: []}, details: null,
              detailsAt: 0, sent: 0};
const curves = new CurvesChart("#curves");
const stack = new StackChart("#stack", 320);
const map = new MapChart("#map", 320);
stack.linked = map;
map.linked = stack;

async function get(path) {
  const response = await fetch(path, {cache: "no-store"});
  if (response.status === 204) return null;
  const json = await response.json();
  if (!response.ok) throw new Error(json.error);
  return json;
}

async function send(command) {
  const answer = d3.select("#answer");
  try {
    const response = await fetch("api/commands", {
      method: "POST", headers: {"Content-Type": "application/json"},
      body: JSON.stringify(command),
    });
    const json = await response.json();
    answer.classed("bad", !response.ok)
        .text(response.ok ? "will be done after the step" : "Refused: " + json.error);
    page.sent = response.ok ? json.number : 0;
    if (!response.ok) drawLanes();  // what was chosen is not what is
  } catch (error) {
    answer.classed("bad", true).text("Not sent: " + error.message);
  }
  poll();
}

// By the place in the list, as long as there are enough.
function colourOf(id) {
  const index = page.now.lanes.findIndex((lane) => lane.id === id);
  return `var(--lane-${Math.max(index, 0) % 8})`;
}

function takesFilter(policy) {
  const found = page.choices.policies.find((p) => p.name === policy);
  return Boolean(found && found.filters);
}

function fillSelect(select, names) {
  const options = select.selectAll("option").data(names);
  options.enter().append("option");
  options.attr("value", (n) => n).text((n) => n || "its own");
}

// --- lanes ---

const kColumns = [
  (l) => Text.ms(l.step_ms), (l) => Text.percent(l.overhead), (l) => l.steps_done,
  (l) => l.loss === null ? "–" : l.loss.toFixed(6), (l) => l.last.evictions,
  (l) => l.last.recomputes, (l) => Text.bytes(l.last.offload_bytes),
  (l) => Text.bytes(l.last.reload_bytes), (l) => Text.ms(l.last.stall_ms),
  (l) => l.last.compactions, (l) => (100 * l.fragmentation).toFixed(0) + " %",
];
const kLossColumn = 3;

function addRow(lane) {
  const row = d3.select(this);
  const id = lane.id;
  const name = row.append("td").attr("class", "left lane");
  name.append("span").attr("class", "swatch");
  name.append("span").attr("class", "id").text(id);
  const how = row.append("td").attr("class", "left");
  const policy = how.append("select").attr("class", "policy").attr("aria-label", "policy");
  how.append("span").text(" ");
  const filter = how.append("select").attr("class", "filter").attr("aria-label", "filter");
  fillSelect(policy, page.choices.policies.map((p) => p.name));
  fillSelect(filter, [""].concat(page.choices.filters));
  const change = () => {
    const chosen = policy.node().value;
    send({do: "switch", lane: id, policy: chosen,
          filter: takesFilter(chosen) ? filter.node().value : ""});
  };
  policy.on("change", change);
  filter.on("change", change);
  const budget = row.append("td").attr("class", "left").append("input").attr("class", "budget-field")
      .attr("aria-label", "budget");
  budget.on("change", () => {
    const text = budget.node().value.trim();
    budget.node().blur();
    if (text) send({do: "budget", lane: id, budget: text});
  });
  kColumns.forEach((column, i) => {
    const cell = row.append("td").attr("class", "figure");
    cell.append("span").attr("class", "value");
    if (i === kLossColumn) cell.append("span").attr("class", "bits");
  });
  row.append("td").append("button").attr({class: "remove", type: "button", title: "remove the lane"})
      .text("✕").on("click", () => {
        d3.event.stopPropagation();
        send({do: "remove", lane: id});
      });
  row.on("click", () => choose(id));
}

function drawLanes() {
  const lanes = page.now.lanes;
  const rows = d3.select("#lanes tbody").selectAll("tr").data(lanes, (l) => l.id);
  rows.enter().append("tr").each(addRow);
  rows.exit().remove();
  rows.order();
  rows.classed("chosen", (l) => l.id === page.chosen)
      .classed("failed", (l) => l.status === "failed")
      .attr("title", (l) => l.error || null);
  rows.each(function (lane) {
    const row = d3.select(this);
    row.select(".swatch").style("background", colourOf(lane.id));
    const idle = (node) => node !== document.activeElement;
    const policy = row.select(".policy").node(), filter = row.select(".filter").node();
    const budget = row.select(".budget-field").node();
    if (idle(policy)) policy.value = lane.policy;
    if (idle(filter)) filter.value = lane.filter;
    filter.style.visibility = takesFilter(lane.policy) ? "visible" : "hidden";
    if (idle(budget)) budget.value = Text.bytes(lane.budget_bytes);
    row.selectAll(".figure .value").data(kColumns)
        .text((column) => lane.status === "failed" ? "failed" : column(lane));
    row.select(".bits").text(lane.loss_bits || "");
    row.select(".remove").property("disabled", lanes.length === 1);
  });
}

function choose(id) {
  page.chosen = id;
  page.details = null;
  page.detailsAt = 0;
  drawLanes();
  drawDetails();
}

// --- the rest of the page ---

function drawHead() {
  const now = page.now;
  d3.select("#job").text(`${now.job}, on ${now.device}`);
  d3.select("#memory").text(
      `Without a budget a step needs ${Text.bytes(now.unmanaged_peak_bytes)}; the least that it ` +
      `can be done with is ${Text.bytes(now.minimum_budget_bytes)}.` +
      (now.reference_ms === null ? "" :
       ` Overhead is over ${Text.ms(now.reference_ms)}: ${now.reference}.`));
  const bad = now.losses.mismatched;
  const losses = d3.select("#losses").classed("good", !bad && now.losses.compared > 0)
      .classed("bad", bad > 0);
  losses.text(now.simulated ? "simulated: no losses"
      : bad ? `losses differ: ${bad} of ${now.losses.compared}`
      : now.losses.compared ? `losses equal to the bit (${now.losses.compared} comparisons)` : "");
  const alarm = d3.select("#alarm").attr("hidden", bad ? null : true);
  if (bad) {
    alarm.text("Losses differ. " + now.losses.mismatches.map((m) =>
        `Step ${m.step}: ${m.lane} has ${m.loss_bits}, ${m.other} has ${m.other_loss_bits}.`)
        .join(" "));
  }
  const done = d3.max(now.lanes, (l) => l.steps_done) || 0;
  d3.select("#status").text((now.finished ? "finished" : now.paused ? "paused" : "running") +
                            ` · step ${done}` + (now.steps ? ` of ${now.steps}` : ""));
  d3.select("#pause").property("disabled", now.finished).text(now.paused ? "Go on" : "Pause");
}

function drawNotices() {
  if (page.sent && page.now.applied >= page.sent) {
    page.sent = 0;
    d3.select("#answer").text("");
  }
  const items = d3.select("#notices").selectAll("li").data(page.now.notices.slice().reverse());
  items.enter().append("li");
  items.exit().remove();
  items.text((n) => n.text).classed("bad", (n) => n.bad);
  if (page.now.notices.length === 0) {
    d3.select("#notices").append("li").attr("class", "quiet").text("Nothing but steps so far.");
  }
}

function drawDetails() {
  const lane = page.now.lanes.find((l) => l.id === page.chosen);
  d3.selectAll(".selected").text(lane ? `lane ${lane.id}, ${lane.name}` : "");
  const step = page.details;
  if (!step) return;
  stack.draw(step);
  map.draw(step);
  d3.select("#left-out").text(
      (step.blocks_left_out ? `${step.blocks_left_out} smaller or shorter blocks are not drawn. ` : "") +
      (step.incomplete ? "Part of the step was not recorded." : ""));
  d3.select("#decisions-about").text(step.decisions_made === 0
      ? "Nothing was released in the last step."
      : `${step.decisions_made} releases in the last step` +
        (step.decisions.length < step.decisions_made ? `; the last ${step.decisions.length}` : "") +
        ", latest first.");
  const rows = d3.select("#decisions tbody").selectAll("tr")
      .data(step.decisions.slice().reverse());
  rows.enter().append("tr");
  rows.exit().remove();
  const cells = rows.selectAll("td").data((d) => [
    Text.ms(d.ms), d.action, d.operator, d.category, Text.bytes(d.bytes), Text.ms(d.age_ms),
    Text.ms(d.cost_ms), d.reason]);
  cells.enter().append("td");
  cells.attr("class", (d, i) => [1, 2, 3, 7].includes(i) ? "left" : null).text((d) => d);
}

function draw() {
  if (!page.now) return;
  if (!page.now.lanes.some((lane) => lane.id === page.chosen)) {
    // The first that has something to decide.
    const lane = page.now.lanes.find((l) => l.policy !== "none") || page.now.lanes[0];
    page.chosen = lane ? lane.id : null;
    page.details = null;
    page.detailsAt = 0;
  }
  drawHead();
  drawLanes();
  if (!curves.frame.pointed) curves.draw(page.now.lanes, colourOf, page.chosen);
  drawNotices();
}

// What is pointed at holds still, so that it can be read.
async function pollDetails() {
  if (page.chosen === null || stack.frame.pointed || map.frame.pointed) return;
  if (Date.now() - page.detailsAt < kDetailsMs) return;
  const chosen = page.chosen;
  const step = await get("api/lane/" + chosen);
  if (chosen !== page.chosen) return;
  page.detailsAt = Date.now();
  step.blocks = step.blocks.map((values) => {
    const block = {};
    kBlock.forEach((name, i) => { block[name] = values[i]; });
    return block;
  });
  page.details = step;
  drawDetails();
  document.body.dataset.drawn = step.step;
}

let polling = false;
async function poll() {
  if (polling) return;
  polling = true;
  try {
    const fresh = await get("api/snapshot?after=" + (page.now ? page.now.number : 0));
    if (fresh) {
      page.now = fresh;
      draw();
    }
    await pollDetails();
  } catch (error) {
    d3.select("#status").text("not connected");
  }
  polling = false;
}

function setUpForms() {
  const add = d3.select("#add"), policy = add.select("[name=policy]");
  fillSelect(policy, page.choices.policies.map((p) => p.name));
  fillSelect(add.select("[name=filter]"), [""].concat(page.choices.filters));
  policy.node().value = "tide";
  const show = () => {
    add.select("[name=filter]").property("disabled", !takesFilter(policy.node().value));
  };
  policy.on("change", show);
  show();
  add.on("submit", function () {
    d3.event.preventDefault();
    const command = {do: "add", policy: this.policy.value, budget: this.budget.value.trim()};
    if (takesFilter(this.policy.value)) command.filter = this.filter.value;
    send(command);
  });
  d3.select("#all").on("submit", function () {
    d3.event.preventDefault();
    send({do: "budget", budget: this.budget.value.trim()});
  });
  d3.select("#pause").on("click", () => send({do: page.now.paused ? "resume" : "pause"}));
}

async function begin() {
  page.choices = await get("api/choices");
  setUpForms();
  await poll();
  setInterval(() => { if (!document.hidden) poll(); }, kPollMs);
  addEventListener("resize", () => { draw(); drawDetails(); });
}
begin();
