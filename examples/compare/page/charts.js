// The charts, and how numbers are written. They draw what they are given and ask nothing.
//
// A block: {offset, bytes, from, to, name, category, ending, age, storage, before, reason}, times
// in ms.
"use strict";

const Text = {
  bytes(n) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let i = 0;
    for (; n >= 1024 && i < units.length - 1; ++i) n /= 1024;
    return (i === 0 ? n : n.toFixed(n < 10 ? 2 : n < 1000 ? 1 : 0)) + " " + units[i];
  },
  ms(t) {
    if (t === null || t === undefined) return "–";
    if (t >= 10000) return (t / 1000).toFixed(1) + " s";
    return t.toFixed(t < 1 ? 3 : t < 100 ? 2 : 1) + " ms";
  },
  percent(share) {
    if (share === null || share === undefined) return "–";
    return (share > 0 ? "+" : "") + (100 * share).toFixed(1) + " %";
  },
  share(share) { return (100 * share).toFixed(0) + " %"; },
  ending(block) {
    switch (block.ending) {
      case "stays": return "still there";
      case "evicted": return "evicted, to be recomputed";
      case "offloaded": return "offloaded: copied out, then freed";
      case "moved": return "moved to another place";
      default: return block.ending;
    }
  },
};

// As the server names them, in the order of a legend. Each has its colour in page.css.
const kKinds = ["activations", "parameters", "gradients", "optimizer state", "buffers", "data",
                "workspace"];
function kindColour(kind) { return `var(--${kind.replace(" ", "-")})`; }
// Neighbours of one kind differ a little; a storage looks the same when it comes back.
function shade(storage) { return 0.62 + 0.38 * ((storage * 0.618034) % 1); }

const Tip = {
  show(event, title, rows) {
    const tip = d3.select("#tip").attr("hidden", null);
    tip.selectAll("*").remove();
    tip.append("b").text(title);
    for (const [name, value, colour] of rows) {
      const line = tip.append("div");
      line.append("span").text(name).style("color", colour || null);
      line.append("span").text(value);
    }
    const box = tip.node().getBoundingClientRect();
    const x = Math.min(event.clientX + 16, innerWidth - box.width - 8);
    const y = event.clientY + 18 + box.height > innerHeight
        ? event.clientY - box.height - 12 : event.clientY + 18;
    tip.style({left: x + "px", top: y + "px"});
  },
  hide() { d3.select("#tip").attr("hidden", true); },
};

// A frame with axes: time to the right, bytes upwards. Dragging over it zooms: `onZoom` is told the
// part that is to be seen, {x: [from, to], y: [from, to]}, or null for all of it.
class Frame {
  constructor(id, height, label) {
    this.box = d3.select(id);
    this.height = height;
    this.margin = {top: 8, right: 22, bottom: 26, left: 66};
    this.zoomed = null;
    this.onZoom = () => {};
    this.addZoomButtons();
    this.svg = this.box.append("svg").attr({height, role: "img", "aria-label": label});
    this.root = this.svg.append("g")
        .attr("transform", `translate(${this.margin.left},${this.margin.top})`);
    this.clip = this.svg.append("clipPath").attr("id", id.slice(1) + "-clip").append("rect");
    this.axisX = this.root.append("g").attr("class", "axis x");
    this.axisY = this.root.append("g").attr("class", "axis y");
    const inside = this.root.append("g").attr("clip-path", `url(${id}-clip)`);
    // Without it only marks would take the mouse.
    this.back = inside.append("rect").style("fill", "none").style("pointer-events", "all");
    this.marks = inside.append("g").attr("class", "marks");
    this.over = inside.append("g").attr("class", "over");
    this.pointed = false;
    this.box.on("mouseenter", () => { this.pointed = true; });
    this.box.on("mouseleave", () => { this.pointed = false; Tip.hide(); this.pick(null); });
    this.svg.on("mousedown.zoom", () => this.drag());
    this.svg.on("dblclick.zoom", () => this.onZoom(null));
  }
  addZoomButtons() {
    const buttons = this.box.append("div").attr("class", "zoom");
    const add = (text, label, act) => buttons.append("button")
        .attr({type: "button", "aria-label": label, title: label}).text(text).on("click", act);
    add("+", "zoom in", () => this.onZoom(this.scaled(0.5)));
    this.out = add("−", "zoom out", () => this.onZoom(this.scaled(2)));
    this.reset = add("Reset zoom", "show all of the step", () => this.onZoom(null));
  }
  // What is seen, larger or smaller around its middle; null if that is everything.
  scaled(factor) {
    const part = (scale, most) => {
      const [from, to] = scale.domain();
      const half = (to - from) * factor / 2, middle = (from + to) / 2;
      return [Math.max(0, middle - half), Math.min(most, middle + half)];
    };
    const x = part(this.x, this.all.x), y = part(this.y, this.all.y);
    const whole = x[0] === 0 && x[1] === this.all.x && y[0] === 0 && y[1] === this.all.y;
    return whole ? null : {x, y};
  }
  drag() {
    if (d3.event.button !== 0) return;
    d3.event.preventDefault();
    const limit = (value, most) => Math.min(Math.max(value, 0), most);
    const at = (event) => {
      const box = this.back.node().getBoundingClientRect();
      return [limit(event.clientX - box.left, this.width),
              limit(event.clientY - box.top, this.inner)];
    };
    const [x0, y0] = at(d3.event);
    const box = this.over.append("rect").attr("class", "zoom-box");
    d3.select(window).on("mousemove.zoom", () => {
      const [x, y] = at(d3.event);
      box.attr({x: Math.min(x, x0), y: Math.min(y, y0), width: Math.abs(x - x0),
                height: Math.abs(y - y0)});
    }).on("mouseup.zoom", () => {
      const [x, y] = at(d3.event);
      box.remove();
      d3.select(window).on("mousemove.zoom", null).on("mouseup.zoom", null);
      if (Math.abs(x - x0) < 5 || Math.abs(y - y0) < 5) return;  // a click
      this.onZoom({x: [x0, x].sort(d3.ascending).map(this.x.invert),
                   y: [y0, y].sort(d3.descending).map(this.y.invert)});
    });
  }
  // For times up to `time` and bytes up to `bytes`, or the part of them that is zoomed to.
  scale(time, bytes) {
    this.all = {x: time || 1, y: bytes || 1};
    const seen = this.zoomed || {x: [0, this.all.x], y: [0, this.all.y]};
    this.out.property("disabled", !this.zoomed);
    this.reset.property("disabled", !this.zoomed);
    this.width = Math.max(this.box.node().clientWidth - this.margin.left - this.margin.right, 80);
    this.inner = this.height - this.margin.top - this.margin.bottom;
    for (const rect of [this.clip, this.back]) {
      rect.attr({x: 0, y: -1, width: this.width, height: this.inner + 2});
    }
    this.x = d3.scale.linear().domain(seen.x).range([0, this.width]);
    this.y = d3.scale.linear().domain(seen.y).range([this.inner, 0]);
    // Round numbers of MiB or GiB, not of bytes.
    const size = Math.max(seen.y[1] - seen.y[0], 1);
    const unit = Math.pow(1024, Math.max(0, Math.floor(Math.log(size) / Math.log(1024))));
    const ticks = d3.scale.linear().domain(seen.y.map((b) => b / unit)).ticks(5)
        .map((t) => t * unit);
    this.axisX.attr("transform", `translate(0,${this.inner})`)
        .call(d3.svg.axis().scale(this.x).orient("bottom").tickSize(4, 0)
            .ticks(Math.max(3, Math.round(this.width / 110)))
            .tickFormat((t) => seen.x[1] < 3000 ? t + " ms" : t / 1000 + " s"));
    this.axisY.call(d3.svg.axis().scale(this.y).orient("left").tickSize(-this.width, 0)
        .tickValues(ticks).tickPadding(8)
        .tickFormat((b) => Text.bytes(b).replace(/\.0+ /, " ").replace(/(\.\d)0 /, "$1 ")));
  }
  // Lets one kind stand out; null: none.
  only(kind) {
    this.marks.selectAll(".tensor, .block")
        .classed("other-kind", (d) => kind !== null && (d.block || d).category !== kind);
  }
  // Lets one storage stand out; null: none.
  pick(storage) {
    this.root.classed("picking", storage !== null);
    this.marks.selectAll(".picked").classed("picked", false);
    if (storage === null) return;
    this.marks.selectAll(".tensor, .block")
        .filter((d) => (d.block || d).storage === storage).classed("picked", true);
  }
}

class CurvesChart {
  constructor(id) { this.frame = new Frame(id, 280, "bytes in the arena over the last step"); }

  draw(lanes, colours, chosen) {
    const f = this.frame;
    const time = d3.max(lanes, (l) => l.last.ms) || 1;
    const bytes = d3.max(lanes, (l) => Math.max(
        d3.max(l.curve, (p) => p[1]) || 0, l.peak_reserved_bytes)) || 1;
    f.scale(time, bytes * 1.04);
    const line = d3.svg.line().x((p) => f.x(p[0])).y((p) => f.y(p[1]))
        .interpolate("step-after");
    const curves = f.marks.selectAll("path.curve").data(lanes, (l) => l.id);
    curves.enter().append("path").attr("class", "curve");
    curves.exit().remove();
    curves.attr("d", (l) => line(l.curve)).style("stroke", (l) => colours(l.id))
        .attr("data-lane", (l) => l.id).classed("chosen", (l) => l.id === chosen);
    const budgets = d3.set(lanes.map((l) => l.budget_bytes)).values().map(Number)
        .filter((b) => b <= bytes * 1.04);
    const dashed = f.over.selectAll("line.budget").data(budgets, String);
    dashed.enter().append("line").attr("class", "budget");
    dashed.exit().remove();
    dashed.attr({x1: 0, x2: f.width, y1: (b) => f.y(b), y2: (b) => f.y(b)});
    this.hover(lanes, colours);
  }

  hover(lanes, colours) {
    const f = this.frame;
    const cross = f.over.selectAll("line.cross").data([0]);
    cross.enter().append("line").attr("class", "cross").style("display", "none");
    cross.attr({y1: 0, y2: f.inner});
    f.svg.on("mousemove", () => {
      const t = f.x.invert(d3.mouse(f.root.node())[0]);
      const inside = t >= 0 && t <= f.x.domain()[1];
      cross.style("display", inside ? null : "none").attr({x1: f.x(t), x2: f.x(t)});
      if (!inside) return Tip.hide();
      const at = d3.bisector((p) => p[0]).right;
      Tip.show(d3.event, "after " + Text.ms(t), lanes.map((l) => {
        const i = at(l.curve, t) - 1;
        const over = l.curve.length === 0 || t > l.last.ms;
        return [`${l.id} ${l.name}`, over ? "step is over" : Text.bytes(l.curve[Math.max(i, 0)][1]),
                colours(l.id)];
      }));
    });
    f.svg.on("mouseleave", () => { cross.style("display", "none"); Tip.hide(); });
  }
}

// What both charts of one lane show of a block.
function blockTip(block) {
  const rows = [
    ["size", Text.bytes(block.bytes)],
    ["kind", block.category],
    ["offset", Text.bytes(block.offset)],
    ["live", (block.before ? "from before" : "from " + Text.ms(block.from)) + " to " +
              Text.ms(block.to)],
    ["idle at the end", Text.ms(block.age)],
    ["why it was freed", Text.ending(block) +
                    (block.reason === "none" ? "" : ` (${block.reason})`)],
  ];
  if (block.storage) rows.push(["tensor", "#" + block.storage]);
  Tip.show(d3.event, block.name || "(not by an operator)", rows);
}

class PlacedChart {
  constructor(id, height, label) {
    this.frame = new Frame(id, height, label);
    this.linked = this;
  }
  point(marks) {
    marks.on("mousemove", (d) => {
      const block = d.block || d;
      blockTip(block);
      this.frame.pick(block.storage || null);
      this.linked.frame.pick(block.storage || null);
    }).on("mouseleave", () => {
      Tip.hide();
      this.frame.pick(null);
      this.linked.frame.pick(null);
    });
  }
}

class MapChart extends PlacedChart {
  draw(step) {
    const f = this.frame;
    f.scale(step.duration_ms, step.capacity_bytes);
    const marks = f.marks.selectAll("rect.block").data(step.blocks);
    marks.enter().append("rect").attr("class", "block");
    marks.exit().remove();
    marks.attr("x", (b) => f.x(b.from)).attr("y", (b) => f.y(b.offset + b.bytes))
        .attr("width", (b) => Math.max(f.x(b.to) - f.x(b.from), 0.3))
        .attr("height", (b) => Math.max(f.y(b.offset) - f.y(b.offset + b.bytes), 0.3))
        .style("fill", (b) => kindColour(b.category))
        .style("fill-opacity", (b) => shade(b.storage));
    this.point(marks);
  }
}

// Tensors one on the other. Those that go take what is above them down:
//
//   +----+              what comes goes on top; a block that is below
//   | c  +-------+      another one for long is drawn first
//   +----+   c   |
//   | b  +-------+
//   +----+
//   |      a     |
//   +------------+
const kOwnShape = 400;

function stackOf(blocks) {
  const area = (b) => b.bytes * (b.to - b.from);
  const large = blocks.slice().sort((a, b) => area(b) - area(a)).slice(0, kOwnShape);
  const chosen = new Set(large);
  const events = [];
  for (const block of blocks) {
    const own = chosen.has(block) ? {block, points: []} : null;
    events.push({t: block.from, add: true, block, own}, {t: block.to, add: false, block, own});
  }
  // At one time: first who goes, then who comes, those that stay longest below.
  events.sort((a, b) => a.t - b.t || a.add - b.add ||
              (a.add ? b.block.to - a.block.to : 0));
  let active = [], smaller = 0;
  const shapes = [], rest = [];
  for (let i = 0; i < events.length;) {
    const t = events[i].t;
    const gone = new Set();
    for (; i < events.length && events[i].t === t; ++i) {
      const {add, block, own} = events[i];
      if (!own) smaller += add ? block.bytes : -block.bytes;
      else if (add) { active.push(own); shapes.push(own); }
      else gone.add(own.block);
    }
    let y = 0;
    const stays = [];
    for (const shape of active) {
      if (gone.has(shape.block)) {
        shape.points.push([t, shape.y]);
        continue;
      }
      stays.push(shape);
      if (shape.y !== y) { shape.y = y; shape.points.push([t, y]); }
      y += shape.block.bytes;
    }
    active = stays;
    rest.push([t, y, smaller]);
  }
  return {shapes: shapes.filter((s) => s.points.length > 1), rest,
          most: d3.max(rest, (r) => r[1] + r[2]) || 1};
}

class StackChart extends PlacedChart {
  draw(step) {
    const f = this.frame;
    const stack = stackOf(step.blocks);
    f.scale(step.duration_ms, Math.max(stack.most, 1));
    // Both ends of an added shape that is gone again are in the data twice; an event finds its
    // shape through the block.
    const shape = d3.svg.area().interpolate("step-after").x((p) => f.x(p[0]));
    const rest = f.marks.selectAll("path.rest").data([stack.rest]);
    rest.enter().append("path").attr("class", "rest");
    rest.attr("d", shape.y0((r) => f.y(r[1])).y1((r) => f.y(r[1] + r[2])));
    const marks = f.marks.selectAll("path.tensor").data(stack.shapes);
    marks.enter().append("path").attr("class", "tensor");
    marks.exit().remove();
    marks.attr("d", (s) => shape.y0((p) => f.y(p[1])).y1((p) => f.y(p[1] + s.block.bytes))(s.points))
        .style("fill", (s) => kindColour(s.block.category))
        .style("fill-opacity", (s) => shade(s.block.storage));
    this.point(marks);
  }
}

// Step time and loss of each lane: small, and on scales that all lanes share.
class HistoryCharts {
  constructor(id) { this.box = d3.select(id); }

  // A lane's series: [[first step, steps, ms, loss or null], ...].
  draw(lanes, colours) {
    const cards = this.box.selectAll("div.card").data(lanes, (l) => l.id);
    cards.enter().append("div").attr("class", "card").attr("data-lane", (l) => l.id)
        .each(function () {
          const title = d3.select(this).append("h3");
          title.append("span").attr("class", "swatch");
          title.append("span").attr("class", "name");
        });
    cards.exit().remove();
    cards.select(".name").text((l) => `${l.id} ${l.name}`);
    cards.select(".swatch").style("background", (l) => colours(l.id));
    const losses = lanes.some((l) => l.series.some((p) => p[3] !== null));
    const steps = [d3.min(lanes, (l) => l.series.length ? l.series[0][0] : Infinity),
                   d3.max(lanes, (l) => l.steps_done) - 1];
    this.line(cards, colours, "time", "step time", 2, steps, lanes, Text.ms, true);
    if (losses) {
      this.line(cards, colours, "loss", "loss", 3, steps, lanes, (v) => v.toFixed(3), false);
    }
  }

  line(cards, colours, name, label, column, steps, lanes, format, fromZero) {
    const height = 58, top = 15, bottom = 4;
    const points = (l) => l.series.filter((p) => p[column] !== null);
    const values = d3.merge(lanes.map((l) => points(l).map((p) => p[column]))).sort(d3.ascending);
    // A few steps that prepare kernels, say, do not flatten all the others.
    const most = fromZero ? 1.1 * d3.quantile(values, 0.95) : d3.max(values);
    const y = d3.scale.linear().domain([fromZero ? 0 : values[0] || 0, most || 1]).clamp(true)
        .range([height - bottom, top]);
    cards.each(function (lane) {
      const card = d3.select(this);
      let svg = card.select("svg." + name);
      if (svg.empty()) {
        svg = card.append("svg").attr({class: name, height, role: "img"});
        svg.append("line").attr("class", "base");
        svg.append("path").attr("class", "line");
        svg.append("text").attr({class: "what", x: 0, y: 10});
        svg.append("text").attr({class: "now", y: 10, "text-anchor": "end"});
      }
      const width = Math.max(card.node().clientWidth, 60);
      const x = d3.scale.linear().domain([steps[0], Math.max(steps[1], steps[0] + 1)])
          .range([1, width - 1]);
      const shown = points(lane);
      const last = shown.length ? format(shown[shown.length - 1][column]) : "–";
      svg.select(".base").attr({x1: 0, x2: width, y1: height - bottom, y2: height - bottom});
      svg.select(".line").style("stroke", colours(lane.id)).attr("d", shown.length
          ? d3.svg.line().x((p) => x(p[0] + (p[1] - 1) / 2)).y((p) => y(p[column]))(shown)
          : null);
      svg.select(".what").text(label);
      svg.select(".now").attr("x", width).text(shown.length > 1
          ? `${format(d3.min(shown, (p) => p[column]))} to ` +
            `${format(d3.max(shown, (p) => p[column]))}, now ${last}` : last);
      svg.attr("aria-label", `${label} of lane ${lane.id}, ${lane.name}: now ${last}`);
    });
  }
}
