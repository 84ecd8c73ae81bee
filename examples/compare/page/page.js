// Asks for snapshots, draws them, and sends commands. What is drawn by d3 is in charts.js.
"use strict";

const kPollMs = 500, kDetailsMs = 1000;
const kBlock = ["offset", "bytes", "from", "to", "name", "category", "ending", "age", "storage",
                "before", "reason"];

// `edits`: by lane, what was chosen here and the engine has not taken over yet: {policy, filter,
// budget (text), command (its number, once it is accepted)}.
const page = {now: null, chosen: null, choices: {policies: [], filters: []}, details: null,
              detailsAt: 0, sent: 0, edits: new Map(), kind: null};
const curves = new CurvesChart("#curves");
const stack = new StackChart("#stack", 320, "resident tensors over the last step, stacked");
const map = new MapChart("#map", 320, "the arena by offset over the last step");
const trainings = new HistoryCharts("#history");
stack.linked = map;
map.linked = stack;

async function get(path) {
  const response = await fetch(path, {cache: "no-store"});
  if (response.status === 204) return null;
  const json = await response.json();
  if (!response.ok) throw new Error(json.error);
  return json;
}

// Gives the number of the command; null if it was refused.
async function send(command) {
  const answer = d3.select("#answer");
  let number = null;
  try {
    const response = await fetch("api/commands", {
      method: "POST", headers: {"Content-Type": "application/json"},
      body: JSON.stringify(command),
    });
    const json = await response.json();
    if (response.ok) number = json.number;
    answer.classed("bad", !response.ok)
        .text(response.ok ? "Accepted; it takes effect after the step." : "Refused: " + json.error);
    page.sent = number || 0;
  } catch (error) {
    answer.classed("bad", true).text("Not sent: " + error.message);
  }
  poll();
  return number;
}

// A change of one lane: shown from now on, until the engine has it or refuses it.
async function edit(id, change, command) {
  page.edits.set(id, {...page.edits.get(id), ...change, command: null});
  drawLanes();
  const number = await send(command);
  const mine = page.edits.get(id);
  if (number === null) page.edits.delete(id);
  else if (mine) mine.command = number;
  drawLanes();
}

function colourOf(id) {
  const lane = page.now.lanes.find((l) => l.id === id);
  return `var(--lane-${lane ? lane.colour : 0})`;
}

function takesFilter(policy) {
  const found = page.choices.policies.find((p) => p.name === policy);
  return Boolean(found && found.filters);
}

function fillSelect(select, names) {
  const options = select.selectAll("option").data(names);
  options.enter().append("option");
  options.attr("value", (n) => n).text((n) => n || "default");
}

// --- lanes ---

// Of each: its name, what counts, and what explains that.
const kColumns = [
  ["step", (l) => Text.ms(l.step_ms), (l) => l.step_ms === null ? "" : "last " + Text.ms(l.last.ms)],
  ["overhead", (l) => overhead(l)[0], (l) => overhead(l)[1]],
  ["steps", (l) => l.steps_done, () => page.now.steps ? "of " + page.now.steps : ""],
  ["loss", (l) => l.loss === null ? "–" : l.loss.toFixed(4), (l) => l.loss_bits || ""],
  ["evicted", (l) => l.last.evictions, (l) => some(l.last.evicted_bytes, Text.bytes)],
  ["recomputed", (l) => l.last.recomputes, (l) => some(l.last.recompute_ms, Text.ms)],
  ["copied out, back", (l) => some(l.last.offload_bytes, Text.bytes) || "0",
   (l) => some(l.last.reload_bytes, Text.bytes)],
  ["waited", (l) => Text.ms(l.last.stall_ms),
   (l) => some(l.last.stall_ms, () => Text.share(l.last.stall_ms / l.last.ms))],
  ["moved", (l) => l.last.compactions, () => ""],
  ["holes", (l) => Text.share(l.fragmentation), () => ""],
];
function some(value, format) { return value > 0 ? format(value) : ""; }

// What is chance is not shown as a number that looks like a result.
function overhead(lane) {
  const o = lane.overhead;
  if (!o) return ["–", ""];
  if (page.now.reference_lane === lane.id) return ["reference", ""];
  if (o.exact) return [Text.percent(o.median), ""];
  if (!o.known) return ["measuring", `${o.steps} of 6 steps`];
  const whole = (share) => (share > 0 ? "+" : "") + (100 * share).toFixed(0);
  const spread = `${whole(o.low)} to ${whole(o.high)} %`;
  return [o.within_noise ? "within noise" : Text.percent(o.median), spread];
}

// What a lane is at, in words, and whether that is something to wait for.
function stateOf(lane) {
  const change = page.edits.has(lane.id) || lane.pending;
  if (lane.status === "failed") return {busy: false, text: "failed: " + lane.error.split("\n")[0]};
  if (lane.phase === "preparing") {
    return {busy: true, text: lane.status === "starting" ? "preparing the lane"
                                                         : "preparing the change"};
  }
  if (lane.phase === "planning") return {busy: true, text: "planning the next steps"};
  if (change) return {busy: true, text: "changes after the step"};
  if (lane.status === "starting") return {busy: true, text: "waiting to start"};
  if (lane.status === "finished") return {busy: false, text: "finished"};
  if (page.now.paused) return {busy: false, text: "paused"};
  const by = lane.schedule && lane.schedule !== lane.policy ? `, by ${lane.schedule}` : "";
  return {busy: false, text: "running" + by};
}

function addRow(lane) {
  const row = d3.select(this);
  const id = lane.id;
  const name = row.append("td").attr("class", "left lane").append("button")
      .attr({class: "show", type: "button", "aria-label": `show lane ${id}`});
  name.append("span").attr("class", "swatch");
  name.append("span").attr("class", "id").text(id);
  const how = row.append("td").attr("class", "left how");
  const policy = how.append("select").attr({class: "policy", "aria-label": `policy of lane ${id}`});
  how.append("span").text(" ");
  const filter = how.append("select").attr({class: "filter", "aria-label": `filter of lane ${id}`});
  how.append("span").attr({class: "more state", role: "status"});
  fillSelect(policy, page.choices.policies.map((p) => p.name));
  fillSelect(filter, [""].concat(page.choices.filters));
  const change = () => {
    const chosen = policy.node().value;
    const taken = takesFilter(chosen) ? filter.node().value : "";
    edit(id, {policy: chosen, filter: taken},
         {do: "switch", lane: id, policy: chosen, filter: taken});
  };
  policy.on("change", change);
  filter.on("change", change);
  const budget = row.append("td").attr({class: "left budget-cell", "data-label": "budget"}).append("input")
      .attr({class: "budget-field", "aria-label": `budget of lane ${id}`, autocomplete: "off"});
  budget.on("change", () => {
    const text = budget.node().value.trim();
    budget.node().blur();
    if (text) edit(id, {budget: text}, {do: "budget", lane: id, budget: text});
  });
  for (const [label] of kColumns) {
    const cell = row.append("td").attr({class: "figure", "data-label": label});
    cell.append("span").attr("class", "value");
    cell.append("span").attr("class", label === "loss" ? "more bits" : "more");
  }
  row.append("td").append("button")
      .attr({class: "remove", type: "button", title: "remove the lane",
             "aria-label": `remove lane ${id}`})
      .text("✕").on("click", () => {
        d3.event.stopPropagation();
        send({do: "remove", lane: id});
      });
  row.on("click", () => choose(id));
}

function drawLanes() {
  const lanes = page.now.lanes;
  for (const [id, mine] of page.edits) {
    const done = mine.command !== null && page.now.applied >= mine.command;
    if (done || !lanes.some((l) => l.id === id)) page.edits.delete(id);
  }
  const rows = d3.select("#lanes tbody").selectAll("tr").data(lanes, (l) => l.id);
  rows.enter().append("tr").each(addRow);
  rows.exit().remove();
  rows.order();
  rows.classed("chosen", (l) => l.id === page.chosen)
      .classed("failed", (l) => l.status === "failed")
      .attr("data-lane", (l) => l.id)
      .attr("title", (l) => l.error || null);
  rows.each(function (lane) {
    const row = d3.select(this);
    const state = stateOf(lane);
    row.classed("busy", state.busy);
    row.select(".state").text(state.text);
    row.select(".swatch").style("background", colourOf(lane.id));
    row.select(".show").attr("aria-pressed", lane.id === page.chosen);
    // What was chosen here, else what the engine is about to do, else what is.
    const mine = page.edits.get(lane.id) || {}, next = lane.pending || {};
    const first = (...values) => values.find((v) => v !== undefined);
    const policy = first(mine.policy, next.policy, lane.policy);
    show(row.select(".policy"), policy, policy !== lane.policy);
    const filter = first(mine.filter, next.filter, lane.filter);
    show(row.select(".filter"), filter, filter !== lane.filter);
    row.select(".filter").style("visibility", takesFilter(policy) ? "visible" : "hidden");
    const bytes = first(next.budget_bytes, lane.budget_bytes);
    show(row.select(".budget-field"), first(mine.budget, Text.bytes(bytes)),
         mine.budget !== undefined || bytes !== lane.budget_bytes);
    const cells = row.selectAll(".figure").data(kColumns);
    cells.select(".value").text((c) => lane.status === "failed" ? "–" : c[1](lane));
    cells.select(".more").text((c) => lane.status === "failed" ? "" : c[2](lane));
    row.select(".remove").property("disabled", lanes.length === 1);
  });
}

// What is being typed is left alone.
function show(field, value, pending) {
  const node = field.node();
  const typed = node === document.activeElement && node.tagName === "INPUT";
  if (!typed && node.value !== value) node.value = value;
  field.classed("pending", pending);
}

function choose(id) {
  if (page.chosen === id) return;
  page.chosen = id;
  stack.frame.zoomed = map.frame.zoomed = null;
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
      `Without a budget a step needs ${Text.bytes(now.unmanaged_peak_bytes)}; the smallest ` +
      `budget is ${Text.bytes(now.minimum_budget_bytes)}.` +
      (now.reference_ms === null ? "" :
       ` Overhead is relative to ${Text.ms(now.reference_ms)}: ${now.reference}` +
       (now.simulated ? "." : ", step by step; below it, its 95 % confidence interval.")));
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
  const under = now.lanes.some((l) => l.phase === "stepping" || l.phase === "planning");
  d3.select("#status").classed("bad", false)
      .text((now.finished ? "finished" : !now.paused ? "running" : under ? "pausing" : "paused") +
            ` · step ${done}` + (now.steps ? ` of ${now.steps}` : ""));
  d3.select("#pause").property("disabled", now.finished).text(now.paused ? "Resume" : "Pause");
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
  drawKinds();
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

// The legend of both charts: the kinds that the step has, with the most that each had at once.
function drawKinds() {
  const most = new Map();
  for (const kind of kKinds) {
    const changes = [];
    for (const b of page.details.blocks) {
      if (b.category === kind) changes.push([b.from, b.bytes], [b.to, -b.bytes]);
    }
    changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    let now = 0, peak = 0;
    for (const [, bytes] of changes) peak = Math.max(peak, now += bytes);
    if (peak > 0) most.set(kind, peak);
  }
  if (!most.has(page.kind)) page.kind = null;
  const items = d3.select("#kinds").selectAll("button").data([...most.keys()], (kind) => kind);
  const added = items.enter().append("button").attr({type: "button", class: "kind"});
  added.append("span").attr("class", "swatch").style("background", kindColour);
  added.append("span").text((kind) => kind);
  added.append("span").attr("class", "size");
  added.on("click", (kind) => {
    page.kind = page.kind === kind ? null : kind;
    drawKinds();
  });
  items.exit().remove();
  items.attr("data-kind", (kind) => kind).attr("aria-pressed", (kind) => kind === page.kind);
  items.select(".size").text((kind) => Text.bytes(most.get(kind)));
  for (const chart of [stack, map]) chart.frame.only(page.kind);
}

// Both charts of a lane show the same time; the bytes of one are not those of the other.
function zoomPair(from, to, zoom) {
  from.frame.zoomed = zoom;
  to.frame.zoomed = zoom && {x: zoom.x, y: to.frame.zoomed ? to.frame.zoomed.y : [0, to.frame.all.y]};
  drawDetails();
}

function drawCurves() { curves.draw(page.now.lanes, colourOf, page.chosen); }

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
  if (!curves.frame.pointed) drawCurves();
  trainings.draw(page.now.lanes, colourOf);
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
    d3.select("#status").classed("bad", true).text("not connected");
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
  curves.frame.onZoom = (zoom) => { curves.frame.zoomed = zoom; drawCurves(); };
  stack.frame.onZoom = (zoom) => zoomPair(stack, map, zoom);
  map.frame.onZoom = (zoom) => zoomPair(map, stack, zoom);
  await poll();
  setInterval(() => { if (!document.hidden) poll(); }, kPollMs);
  addEventListener("resize", () => { draw(); drawDetails(); });
}
begin();
