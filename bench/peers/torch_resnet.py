#!/usr/bin/env python3
"""One training run of a torchvision ResNet: the peer that train_resnet is measured against.

Prints JSON: step times in ms, the losses, and memory: of the process before the model and at its
highest and, on a GPU, the most that PyTorch's allocator had given out and reserved. With
--max-batch, the largest batch that trains instead (found by trying), and the run with that.
Needs: pip install torch torchvision numpy
"""

import argparse
import gc
import time

from figures import memory_bytes, print_result

MODES = {
    "plain": "as it comes",
    "checkpoint": "torch.utils.checkpoint around each residual block",
    "save_on_cpu": "torch.autograd.graph.save_on_cpu, pinned: what backward needs goes to the host",
    "memory_budget": "torch.compile with its activation memory budget (--activation-budget)",
}


def largest(fits, first, most):
    """The largest number up to `most` that fits, 0 if not even 1 does: doubles, then halves what is
    left, to 1/64 of the answer. What fits is taken to fit when it is less."""
    good, bad = 0, most + 1
    trial = min(first, most)
    while bad - good > max(1, good // 64):
        if fits(trial):
            good = trial
        else:
            bad = trial
        trial = min(2 * good, most) if bad > most and good else (good + bad) // 2
        if trial in (good, bad):
            break
    return good


class Run:
    """A model and its optimizer, ready to take steps; everything goes with it."""

    def __init__(self, args, torch, torchvision):
        self.torch, self.args = torch, args
        torch.manual_seed(0)
        layout = torch.channels_last if args.layout == "channels_last" else torch.contiguous_format
        model = getattr(torchvision.models, args.model)(num_classes=1000)
        self.model = model.to(args.device, memory_format=layout)
        self.layout = layout
        if args.mode == "checkpoint":
            from torch.utils.checkpoint import checkpoint
            for stage in (model.layer1, model.layer2, model.layer3, model.layer4):
                for block in stage:
                    whole = block.forward
                    block.forward = lambda x, whole=whole: checkpoint(whole, x, use_reentrant=False)
        self.model.train()
        self.forward = self.model
        if args.mode == "memory_budget":
            import torch._functorch.config
            torch._functorch.config.activation_memory_budget = args.activation_budget
            self.forward = torch.compile(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)

    def synchronize(self):
        if self.args.device != "cpu":
            self.torch.cuda.synchronize()

    def train(self, batch, steps):
        torch, size = self.torch, self.args.image_size
        host = torch.randn(batch, 3, size, size).to(memory_format=self.layout)
        if self.args.upload and self.args.device != "cpu":
            host = host.pin_memory()
        images = host.to(self.args.device)
        labels = torch.randint(0, 1000, (batch,), device=self.args.device)
        times, losses = [], []
        for _ in range(steps):
            self.synchronize()
            start = time.perf_counter()
            if self.args.upload:
                images = host.to(self.args.device, non_blocking=True)
            self.optimizer.zero_grad(set_to_none=True)
            if self.args.mode == "save_on_cpu":
                with torch.autograd.graph.save_on_cpu(pin_memory=self.args.device != "cpu"):
                    loss = torch.nn.functional.cross_entropy(self.forward(images), labels)
            else:
                loss = torch.nn.functional.cross_entropy(self.forward(images), labels)
            loss.backward()
            self.optimizer.step()
            # Kept on the device: train_resnet reads each loss too, so it is read within the step.
            losses.append(loss.item())
            self.synchronize()
            times.append((time.perf_counter() - start) * 1e3)
        return times, losses


def fits(args, torch, torchvision, batch):
    run = None
    try:
        run = Run(args, torch, torchvision)
        run.train(batch, 2)
        return True
    except (torch.cuda.OutOfMemoryError, MemoryError):
        return False
    except RuntimeError as error:  # what cuDNN and the host's allocator throw
        if "out of memory" in str(error).lower() or "alloc" in str(error).lower():
            return False
        raise
    finally:
        if run is not None:
            run.optimizer.zero_grad(set_to_none=True)
        del run
        gc.collect()
        if args.device != "cpu":
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            torch._C._host_emptyCache()  # what save_on_cpu has pinned


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu, or cuda")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--layout", choices=["nchw", "channels_last"], default="channels_last")
    parser.add_argument("--mode", choices=MODES, default="plain",
                        help="\n".join(f"{name}: {what}" for name, what in MODES.items()))
    parser.add_argument("--checkpoint", action="store_const", const="checkpoint", dest="mode")
    parser.add_argument("--activation-budget", type=float, default=0.5,
                        help="for mode memory_budget: the share of activations that is kept")
    parser.add_argument("--no-tf32", action="store_true", help="products of float32 in float32 [TF32]")
    parser.add_argument("--benchmark", action="store_true",
                        help="cuDNN times its algorithms and takes the fastest")
    parser.add_argument("--upload", action="store_true",
                        help="copy the images from pinned memory in each step, as train_resnet does")
    parser.add_argument("--max-batch", action="store_true", help="find the largest batch, from --batch on")
    parser.add_argument("--most", type=int, default=1 << 16, help="for --max-batch: largest batch to try")
    args = parser.parse_args()

    import torch
    import torchvision

    torch.set_num_threads(args.threads)
    torch.backends.cuda.matmul.allow_tf32 = not args.no_tf32
    torch.backends.cudnn.allow_tf32 = not args.no_tf32
    torch.backends.cudnn.benchmark = args.benchmark
    before = memory_bytes("VmRSS")
    result = {
        "peer": "pytorch " + torch.__version__, "device": args.device, "model": args.model,
        "image_size": args.image_size, "threads": args.threads, "layout": args.layout,
        "mode": args.mode, "checkpoint": args.mode == "checkpoint", "tf32": not args.no_tf32,
        "benchmark": args.benchmark, "upload": args.upload,
    }
    if args.device != "cpu":
        result["gpu"] = torch.cuda.get_device_name()
    if args.mode == "memory_budget":
        result["activation_budget"] = args.activation_budget
    batch = args.batch
    if args.max_batch:
        batch = largest(lambda n: fits(args, torch, torchvision, n), args.batch, args.most)
    result["batch"] = batch
    result["max_batch"] = batch if args.max_batch else None
    if args.device != "cpu":
        torch.cuda.reset_peak_memory_stats()
    times, losses = Run(args, torch, torchvision).train(batch, args.steps) if batch else ([], [])
    print_result(result, times, losses, before, torch.cuda if args.device != "cpu" else None)


if __name__ == "__main__":
    main()
