#!/usr/bin/env python3
"""Writes rematerialisation problems (remat-1, data/instances/remat) to try planners on: training
steps of convolutional networks with typical sizes, times from a simple model of a GPU.

usage: remat_instances.py FOLDER [--seeds FIRST LAST] [--small]

- Networks, by the first seed: vgg, resnet, mobilenet, googlenet, unet.
- Random shapes, one of each kind for each seed: chains, residual blocks, U-shaped skips, nested
  series and parallel branches.
- small-SEED.json, with --small: steps of about 10 nodes of these shapes with every feature of the
  format. Each budget states its optimum, by search over all states; null: no schedule fits.

All but the small ones come twice: NAME.json with one variant per node, and NAME-variants.json, of
another random shape, with convolution algorithms that trade workspace for time, ReLU in place, and
backward nodes that use sign bits or pooling indices in place of activations. The same seed gives the
same files."""

import argparse
import heapq
import itertools
import json
import math
import random
from pathlib import Path

FLOPS = 8e12  # per second
BANDWIDTH = 4e11  # bytes per second
BUDGETS = (0.8, 0.6, 0.45, 0.3)  # of the memory that keeps everything, above the fixed bytes


class Step:
    """A training step under construction: forward nodes, then a backward node for each."""

    def __init__(self, batch, variants, noise):
        self.batch, self.variants, self.noise = batch, variants, noise
        self.nodes, self.tape = [], []
        self.parameters = 0

    def add(self, name, time, size, inputs, **more):
        inputs = sorted({i for i in inputs if i is not None})
        self.nodes.append(
            {"name": name, "time": round(time * 1e3, 6), "bytes": int(size), "inputs": inputs, **more})
        return len(self.nodes) - 1

    def streaming(self, size):
        return size / BANDWIDTH * self.noise.uniform(0.9, 1.1) + 5e-6

    def algorithms(self, time, size, kernel):
        """(time, workspace), the default first."""
        draw = self.noise.uniform
        found = [(time, int(size * draw(0.0, 0.1)))]
        if self.variants:
            found.append((time * draw(1.1, 1.6), 0))
            found.append((time * draw(0.85, 1.0), int(size * draw(0.2, 0.8))))
            if kernel == 3:
                found.append((time * draw(0.5, 0.8), int(size * draw(0.5, 2.5))))
                found.append((time * draw(0.6, 0.95), int(size * draw(1.0, 4.0))))
            if kernel > 1:
                found.append((time * draw(0.8, 1.2), int(size * draw(1.0, 3.0))))
        return found

    def with_algorithms(self, name, flops, size, inputs, kernel, **more):
        time = flops / FLOPS * self.noise.uniform(0.8, 1.3) + 1e-5
        found = self.algorithms(time, size, kernel)
        if len(found) > 1:
            more["variants"] = [{"time": round(t * 1e3, 6), "workspace": w} for t, w in found]
        return self.add(name, found[0][0], more.pop("bytes"), inputs, workspace=found[0][1], **more)

    # A value is (node, channels, height). Inputs of the network have the node None.
    def size(self, channels, height):
        return 4 * self.batch * channels * height * height

    def conv(self, value, channels, kernel, stride=1, groups=1):
        x, before, height = value
        out = max(height // stride, 1)
        flops = 2 * self.batch * out * out * channels * (before // groups) * kernel * kernel
        size = max(self.size(before, height), self.size(channels, out))
        y = self.with_algorithms("conv", flops, size, [x], kernel, bytes=self.size(channels, out))
        weights = 4 * channels * (before // groups) * kernel * kernel
        self.parameters += weights

        def backward(dy):
            self.with_algorithms("conv_dw", flops, size, [x, dy], kernel, bytes=0, required=True,
                                 once=True, adds_fixed=weights)
            if x is None:
                return [None]
            return [self.with_algorithms("conv_dx", flops, size, [dy], kernel,
                                         bytes=self.size(before, height))]

        self.tape.append((y, [x], backward))
        return y, channels, out

    def simple(self, name, value, channels, out, needs):
        """An operator that streams; `needs` of its backward node: x, y or none."""
        x, before, height = value
        size = self.size(channels, out)
        y = self.add(name, self.streaming(size + self.size(before, height)), size, [x])
        kept = {"x": [x], "y": [y], "": []}[needs]

        def backward(dy):
            return [self.add("d_" + name, self.streaming(2 * size), self.size(before, height),
                             [dy, *kept])]

        self.tape.append((y, [x], backward))
        return y, channels, out

    def norm(self, value):
        x, channels, height = value
        return self.simple("norm", value, channels, height, "x")

    def relu(self, value):
        x, channels, height = value
        if not self.variants:
            return self.simple("relu", value, channels, height, "y")
        size = self.size(channels, height)
        time = self.streaming(2 * size)
        y = self.add("relu", time, size, [x], variants=[{}, {"overwrites": x, "workspace": -size}])
        mask = self.add("signs", self.streaming(size), size // 32, [y], rider_of=y)

        def backward(dy):
            t = self.streaming(2 * size)
            return [self.add("d_relu", t, size, [dy, y], variants=[
                {}, {"inputs": sorted([dy, mask])}, {"inputs": sorted([dy, x])},
                {"inputs": sorted([dy, y]), "overwrites": dy, "workspace": -size},
                {"inputs": sorted([dy, mask]), "overwrites": dy, "workspace": -size}])]

        self.tape.append((y, [x], backward))
        return y, channels, height

    def pool(self, value, stride=2):
        x, channels, height = value
        out = max(height // stride, 1)
        small, large = self.size(channels, out), self.size(channels, height)
        more = {"variants": [{}, {"time": round(self.streaming(large) * 1.3e3, 6)}]}
        y = self.add("pool", self.streaming(large), small, [x], **(more if self.variants else {}))
        indices = None
        if self.variants:
            indices = self.add("indices", 1e-6, small // 4, [y], rider_of=y, variants=[{"with": [1]}])

        def backward(dy):
            more = {}
            if self.variants:
                more["variants"] = [{}, {"inputs": sorted([dy, indices])}]
            return [self.add("d_pool", self.streaming(large), large, [dy, x, y], **more)]

        self.tape.append((y, [x], backward))
        return y, channels, out

    def join(self, name, values, channels):
        """A sum or a concatenation: its gradient is passed on or split, at no cost."""
        height = values[0][2]
        size = self.size(channels, height)
        y = self.add(name, self.streaming(2 * size), size, [v[0] for v in values])
        total = name == "add"

        def backward(dy):
            if total:
                return [dy] * len(values)
            return [self.add("d_concat", self.streaming(2 * self.size(v[1], height)),
                             self.size(v[1], height), [dy]) for v in values]

        self.tape.append((y, [v[0] for v in values], backward))
        return y, channels, height

    def upsample(self, value):
        return self.simple("upsample", value, value[1], value[2] * 2, "")

    def finish(self, name, value):
        """The loss, then all backward nodes; gradients that meet are added."""
        loss = self.add("loss", 1e-5, 4, [value[0]])
        gradients = {value[0]: [self.add("d_loss", 1e-5, self.nodes[value[0]]["bytes"],
                                         [value[0], loss])]}
        for y, sources, backward in reversed(self.tape):
            parts = gradients.pop(y, [])
            if not parts:
                continue
            size = self.nodes[y]["bytes"]
            dy = parts[0]
            for part in parts[1:]:
                more = {"variants": [{}, {"overwrites": dy, "workspace": -size}]} if self.variants else {}
                dy = self.add("sum", self.streaming(3 * size), size, [dy, part], **more)
            for source, gradient in zip(sources, backward(dy)):
                if source is not None:
                    gradients.setdefault(source, []).append(gradient)
        self.nodes[-1]["required"] = True
        problem = {"format": "remat-1", "name": name, "unit_time": "ms",
                   "fixed_bytes": 2 * self.parameters, "nodes": self.nodes}
        problem["budgets"] = [{"bytes": int(problem["fixed_bytes"] + share * self.keep_all())}
                              for share in BUDGETS]
        return problem

    def keep_all(self):
        """Peak above the fixed bytes, in the order of the list, freeing after last uses."""
        last = {}
        for k, node in enumerate(self.nodes):
            for i in [k, *node["inputs"]]:
                last[i] = k
        live = peak = fixed = 0
        for k, node in enumerate(self.nodes):
            fixed += node.get("adds_fixed", 0)
            live += node["bytes"]
            peak = max(peak, fixed + live + node.get("workspace", 0))
            live -= sum(self.nodes[i]["bytes"] for i, at in last.items() if at == k)
        return peak


def conv_block(step, value, channels, kernel, stride=1, groups=1, norm=True):
    value = step.conv(value, channels, kernel, stride, groups)
    return step.relu(step.norm(value) if norm else value)


def vgg(step):
    value = (None, 3, 224)
    for channels, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            value = conv_block(step, value, channels, 3, norm=False)
        value = step.pool(value)
    return conv_block(step, value, 1000, 1, norm=False)


def resnet(step):
    value = step.pool(conv_block(step, (None, 3, 224), 64, 7, 2))
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for k in range(count):
            jump = stride if k == 0 else 1
            skip = value if k else step.norm(step.conv(value, 4 * width, 1, jump))
            value = conv_block(step, conv_block(step, value, width, 1), width, 3, jump)
            value = step.norm(step.conv(value, 4 * width, 1))
            value = step.relu(step.join("add", [value, skip], 4 * width))
    return value


def mobilenet(step):
    value = conv_block(step, (None, 3, 224), 32, 3, 2)
    for expand, width, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                         (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for k in range(count):
            jump, hidden, before = (stride if k == 0 else 1), expand * value[1], value
            if expand > 1:
                value = conv_block(step, value, hidden, 1)
            value = conv_block(step, value, hidden, 3, jump, groups=hidden)
            value = step.norm(step.conv(value, width, 1))
            if k:
                value = step.join("add", [value, before], width)
    return conv_block(step, value, 1280, 1)


def googlenet(step):
    value = step.pool(conv_block(step, (None, 3, 224), 64, 7, 2))
    value = step.pool(conv_block(step, conv_block(step, value, 64, 1), 192, 3))
    for k, width in enumerate((256, 480, 512, 512, 528, 832, 832, 1024)):
        quarter = width // 4
        branches = [conv_block(step, value, quarter, 1),
                    conv_block(step, conv_block(step, value, quarter // 2, 1), width // 2, 3),
                    conv_block(step, conv_block(step, value, quarter // 4, 1), quarter // 2, 5),
                    conv_block(step, step.pool(value, 1), width - quarter - width // 2 - quarter // 2, 1)]
        value = step.join("concat", branches, width)
        if k in (1, 5):
            value = step.pool(value)
    return value


def unet(step):
    value, skips = (None, 3, 256), []
    for width in (64, 128, 256, 512):
        value = conv_block(step, conv_block(step, value, width, 3), width, 3)
        skips.append(value)
        value = step.pool(value)
    value = conv_block(step, conv_block(step, value, 1024, 3), 1024, 3)
    for skip in reversed(skips):
        value = step.conv(step.upsample(value), skip[1], 1)
        value = step.join("concat", [skip, value], 2 * skip[1])
        value = conv_block(step, conv_block(step, value, skip[1], 3), skip[1], 3)
    return step.conv(value, 2, 1)


def random_chain(step):
    draw, value = step.noise, (None, 3, 112)
    for _ in range(draw.randint(8, 20)):
        value = conv_block(step, value, draw.choice((32, 64, 128, 256)), draw.choice((1, 3, 3, 5)),
                           norm=draw.random() < 0.5)
        if value[2] > 14 and draw.random() < 0.25:
            value = step.pool(value)
    return value


def random_residual(step):
    draw = step.noise
    value = conv_block(step, (None, 3, 112), 64, 7, 2)
    for width in (64, 128, 256, 512)[:draw.randint(2, 4)]:
        for k in range(draw.randint(1, 4)):
            jump = 2 if k == 0 and width > 64 else 1
            skip = value if jump == 1 and value[1] == width else step.conv(value, width, 1, jump)
            kernel = draw.choice((1, 3, 3))
            value = step.norm(step.conv(conv_block(step, value, width, kernel, jump), width, 3))
            value = step.relu(step.join("add", [value, skip], width))
    return value


def random_u(step):
    draw, value, skips = step.noise, (None, 3, 128), []
    width = draw.choice((16, 32, 64))
    for level in range(draw.randint(2, 4)):
        for _ in range(draw.randint(1, 3)):
            value = conv_block(step, value, width << level, 3, norm=draw.random() < 0.5)
        skips.append(value)
        value = step.pool(value)
    value = conv_block(step, value, 2 * value[1], 3)
    for skip in reversed(skips):
        value = step.join("concat", [skip, step.conv(step.upsample(value), skip[1], 1)], 2 * skip[1])
        for _ in range(draw.randint(1, 3)):
            value = conv_block(step, value, skip[1], 3, norm=draw.random() < 0.5)
    return step.conv(value, 2, 1)


def random_branches(step, value=(None, 3, 64), depth=3):
    """Parts in series, each a block or branches that meet in a sum or a concatenation."""
    draw = step.noise
    for _ in range(draw.randint(2, 4) if depth > 1 else 1):
        if depth == 1 or draw.random() < 0.4:
            value = conv_block(step, value, draw.choice((32, 64, 128)), draw.choice((1, 3, 5)),
                               norm=draw.random() < 0.5)
            continue
        parts = [random_branches(step, value, depth - 1) for _ in range(draw.randint(2, 3))]
        if draw.random() < 0.5:
            parts = [step.conv(part, 64, 1) for part in parts]
            value = step.join("add", parts, 64)
        else:
            value = step.join("concat", parts, sum(part[1] for part in parts))
    return value


def small_step(noise):
    """A step of about 10 nodes: a chain, residual, U-shaped or with random skips."""
    nodes = []

    def add(inputs, **more):
        nodes.append({"name": "n%d" % len(nodes), "time": noise.randint(1, 9),
                      "bytes": noise.randint(1, 6), "inputs": sorted(set(inputs)), **more})
        return len(nodes) - 1

    kind = noise.choice(("chain", "residual", "u", "random"))
    forward = [add([])]
    for k in range(1, 5):
        skips = {"chain": [], "residual": forward[-2:-1], "u": [forward[4 - k]] if k > 2 else [],
                 "random": [noise.choice(forward)] if noise.random() < 0.5 else []}
        x = forward[-1]
        forward.append(add([x, *skips[kind]]))
        node = nodes[-1]
        feature = noise.random()
        if feature < 0.25:
            node["variants"] = [{"workspace": noise.randint(1, 4)}, {"time": node["time"] + 2}]
        elif feature < 0.4 and len(nodes) > 2:
            node["variants"] = [{}, {"overwrites": x}]
        elif feature < 0.5:
            node["variants"] = [{"when": "first"}, {"time": node["time"] // 2, "when": "again"}]
    riders = {}
    if noise.random() < 0.4:
        riders[forward[-2]] = add([forward[-2]], rider_of=forward[-2])
        nodes[-1].update(time=1, bytes=1)
    gradient = add([forward[-1]])
    for x in reversed(forward[:-1]):
        gradient = add([gradient, x])
        if x in riders:
            nodes[-1]["variants"] = [{}, {"inputs": sorted([gradient - 1, riders[x]])}]
    nodes[-1]["required"] = True
    if noise.random() < 0.3:
        add([gradient], required=True, once=True, adds_fixed=noise.randint(0, 2))
        nodes[-1]["bytes"] = 0
    problem = {"format": "remat-1", "name": kind, "unit_time": "units", "fixed_bytes": 1,
               "nodes": nodes}
    most = 1 + sum(node["bytes"] for node in nodes)
    found = []
    for budget in range(most // 3, most, 2):
        least = optimum(problem, budget)
        if least < math.inf and found and found[-1]["optimum"] == least:
            break
        found = found[-1:] if least == math.inf else found
        found.append({"bytes": budget, "optimum": None if least == math.inf else least})
    problem["budgets"] = found
    return problem


def variants_of(node):
    return [{**node, **variant} for variant in node.get("variants", [{}])]


def optimum(problem, budget):
    """The least time within the budget, by Dijkstra's search over the values that are live, the
    nodes that ran, and the last run."""
    nodes = problem["nodes"]
    variants = [variants_of(node) for node in nodes]
    must = sum(1 << i for i, node in enumerate(nodes)
               if node.get("required") or i == len(nodes) - 1)
    parents = {node.get("rider_of") for node in nodes}
    start = (0, 0, None, None)
    least, queue, count = {start: 0}, [(0, 0, start)], 0
    while queue:
        time, _, state = heapq.heappop(queue)
        live, ran, last, last_variant = state
        if least[state] < time:
            continue
        if ran & must == must:
            return time
        held = problem["fixed_bytes"]
        for i, node in enumerate(nodes):
            held += node["bytes"] * (live >> i & 1) + node.get("adds_fixed", 0) * (ran >> i & 1)
        following = []
        for i, node in enumerate(nodes):
            if live >> i & 1:
                following.append((time, (live & ~(1 << i), ran, last, last_variant)))
                continue
            again = ran >> i & 1
            if (again and node.get("once")) or node.get("rider_of", last) != last:
                continue
            for v, variant in enumerate(variants[i]):
                if variant.get("when") == ("first" if again else "again"):
                    continue
                over = variant.get("overwrites")
                needs = [*variant["inputs"], *([] if over is None else [over])]
                memory = held + node.get("adds_fixed", 0) + node["bytes"] + variant.get("workspace", 0)
                if memory > budget or not all(live >> u & 1 for u in needs):
                    continue
                if "rider_of" in node and last_variant not in variant.get("with", [last_variant]):
                    continue
                now = (live | 1 << i) & ~(0 if over is None else 1 << over)
                mark = (i, v) if i in parents else (None, None)
                following.append((time + variant["time"], (now, ran | 1 << i, *mark)))
        for time_then, then in following:
            if time_then < least.get(then, math.inf):
                least[then] = time_then
                count += 1
                heapq.heappush(queue, (time_then, count, then))
    return math.inf


NETWORKS = {"vgg": (vgg, 184), "resnet": (resnet, 184), "mobilenet": (mobilenet, 256),
            "googlenet": (googlenet, 320), "unet": (unet, 11)}
RANDOM = {"chain": (random_chain, 32), "residual": (random_residual, 64), "u": (random_u, 16),
          "branches": (random_branches, 64)}


def steps_of(kinds, seed, suffix=""):
    for name, (build, batch) in kinds.items():
        for variants in (False, True):
            full = name + suffix + ("-variants" if variants else "")
            step = Step(batch, variants, random.Random("%d %s" % (seed, name)))
            yield step.finish(full, build(step))


def random_steps(first, last, small):
    """The problems of random shapes."""
    for seed in range(first, last + 1):
        yield from steps_of(RANDOM, seed, "-%d" % seed)
        if small:
            problem = small_step(random.Random("%d small" % seed))
            problem["name"] = "small-%d" % seed
            yield problem


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs=2, default=(1, 4), metavar=("FIRST", "LAST"))
    parser.add_argument("--small", action="store_true", help="small steps with optima too")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    networks = steps_of(NETWORKS, args.seeds[0])
    for problem in itertools.chain(networks, random_steps(*args.seeds, args.small)):
        (args.folder / (problem["name"] + ".json")).write_text(json.dumps(problem))
        print(problem["name"], len(problem["nodes"]), "nodes")


if __name__ == "__main__":
    main()
