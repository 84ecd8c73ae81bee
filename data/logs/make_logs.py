#!/usr/bin/env python3
"""Writes the generated logs of this folder: programs in the format of DTR's simulator.

  linear.log   a chain of 64 equal layers, forward and backward: DTR's own worst-case family
  resnet.log   residual blocks whose sizes and times fall and rise as a ResNet's do, with
               in-place updates of the weights
  lstm.log     a recurrent cell, unrolled: multi-output calls, views and copies

usage: make_logs.py [FOLDER]
"""

import json
import pathlib
import sys


class Log:
    def __init__(self):
        self.lines = []
        self.count = 0

    def emit(self, instruction, **fields):
        self.lines.append(json.dumps({"INSTRUCTION": instruction, **fields}))

    def name(self):
        self.count += 1
        return f"x{self.count}"

    def constant(self, memory):
        name = self.name()
        self.emit("CONSTANT", NAME=name)
        self.emit("MEMORY", NAME=name, MEMORY=str(memory))
        return name

    def call(self, operator, args, memories, time, aliases=None):
        names = [self.name() for _ in memories]
        self.emit("CALL", NAME=operator, ARGS=args, RESULT=names, TIME=str(time))
        for i, (name, memory) in enumerate(zip(names, memories)):
            self.emit("MEMORY", NAME=name, MEMORY=str(memory))
            self.emit("ALIAS", NAME=name, ALIAS=str(aliases[i] if aliases else -1))
        return names

    def release(self, *names):
        for name in names:
            self.emit("RELEASE", NAME=name)

    def write(self, path):
        path.write_text("\n".join(self.lines) + "\n")


def linear(layers=64, memory=1 << 20, time=1_000_000):
    log = Log()
    x = log.constant(memory)
    log.emit("ANNOTATE", ANNOTATION="START")
    kept = []
    for _ in range(layers):
        kept.append(x)
        (x,) = log.call("layer", [x], [memory], time)
    (grad,) = log.call("loss", [x], [memory], time)
    log.release(x)
    for x in reversed(kept):
        (next_grad,) = log.call("layer_backward", [x, grad], [memory], time)
        log.release(x, grad)
        grad = next_grad
    return log


def resnet(stages=4, blocks=3, memory=8 << 20, time=2_000_000):
    log = Log()
    x = log.constant(memory)
    stage_weights = [64 << 10 << (2 * s) for s in range(stages)]
    weights = [[log.constant(stage_weights[s]) for _ in range(blocks)] for s in range(stages)]
    log.emit("ANNOTATE", ANNOTATION="START")
    tape = []
    for s in range(stages):
        size = memory >> s
        for b in range(blocks):
            w = weights[s][b]
            (conv,) = log.call("conv", [x, w], [size], time)
            (norm, stats) = log.call("batch_norm", [conv], [size, 4096], time // 20)
            shortcut = x
            if size != memory >> max(0, s - (b == 0)):
                (shortcut,) = log.call("pool", [x], [size], time // 40)
            (total,) = log.call("add", [norm, shortcut], [size], time // 30)
            (y,) = log.call("relu", [total], [size], time // 40)
            tape.append((s, b, x, conv, stats, y))
            log.release(norm, total)
            if shortcut != x:
                log.release(shortcut)
            x = y
    (grad,) = log.call("loss", [x], [memory >> (stages - 1)], time // 50)
    grads = {}
    for s, b, x, conv, stats, y in reversed(tape):
        size = memory >> s
        (g1,) = log.call("relu_backward", [grad, y], [size], time // 40)
        (g2,) = log.call("batch_norm_backward", [g1, conv, stats], [size], time // 15)
        log.release(conv, stats)
        w = weights[s][b]
        before = memory >> max(0, s - (b == 0))
        gw, gx = log.call("conv_backward", [g2, x, w], [stage_weights[s], before], 2 * time)
        grads[(s, b)] = gw
        log.release(g1, g2, grad, y)
        grad = gx
    for (s, b), gw in grads.items():
        log.emit("MUTATE", NAME="add_", ARGS=[weights[s][b], gw], MUTATE=[0], TIME=str(time // 100))
        log.release(gw)
    log.release(grad)
    return log


def lstm(steps=48, memory=256 << 10, time=300_000):
    log = Log()
    w = log.constant(4 << 20)
    h, c = log.constant(memory), log.constant(memory)
    log.emit("ANNOTATE", ANNOTATION="START")
    tape = []
    for _ in range(steps):
        x = log.constant(memory)
        (gates,) = log.call("linear", [x, h, w], [4 * memory], time)
        parts = log.call("chunk", [gates], [0, 0, 0, 0], 500, aliases=[0, 0, 0, 0])
        (i, f, o, g) = (log.call(k, [p], [memory], 20_000)[0]
                        for k, p in zip(("sigmoid", "sigmoid", "sigmoid", "tanh"), parts))
        log.release(gates, *parts)
        new_c, new_h = log.call("cell", [i, f, o, g, c], [memory, memory], 60_000)
        saved = log.name()
        log.emit("COPY", DST=saved, SRC=new_h)
        tape.append((x, h, c, i, f, o, g, saved))
        h, c = new_h, new_c
    (gh,) = log.call("loss", [h], [memory], 10_000)
    gc = gw = None
    log.release(h)
    for x, h, c, i, f, o, g, saved in reversed(tape):
        args = [gh, i, f, o, g, c, saved] + ([gc] if gc else [])
        results = log.call("cell_backward", args, [4 * memory, memory], 120_000)
        gates_grad, next_gc = results
        log.release(i, f, o, g, saved, gh, *([gc] if gc else []))
        part, next_gh = log.call("linear_backward", [gates_grad, x, h, w], [4 << 20, memory],
                                 2 * time)
        log.release(gates_grad, x)
        if gw:
            log.emit("MUTATE", NAME="add_", ARGS=[gw, part], MUTATE=[0], TIME="40000")
            log.release(part)
        else:
            gw = log.name()
            log.emit("COPY", DST=gw, SRC=part)
            log.release(part)
        gh, gc = next_gh, next_gc
    log.emit("MUTATE", NAME="add_", ARGS=[w, gw], MUTATE=[0], TIME="40000")
    log.release(gw, gh, gc)
    return log


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    linear().write(folder / "linear.log")
    resnet().write(folder / "resnet.log")
    lstm().write(folder / "lstm.log")


if __name__ == "__main__":
    main()
