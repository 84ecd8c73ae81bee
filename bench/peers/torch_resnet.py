#!/usr/bin/env python3
"""One training run of a torchvision ResNet on the CPU: the peer that train_resnet is measured against.

Prints JSON: step times in ms, the process's memory before the model and at its highest, the losses.
Needs: pip install torch torchvision numpy
"""

import argparse
import json
import time


def memory_kib(key):
    """VmRSS or VmHWM of this process."""
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(key + ":"):
                return int(line.split()[1])
    raise RuntimeError(f"/proc/self/status has no {key}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--layout", choices=["nchw", "channels_last"], default="channels_last")
    parser.add_argument("--checkpoint", action="store_true",
                        help="torch.utils.checkpoint around each residual block")
    args = parser.parse_args()

    import torch
    import torchvision
    from torch.utils.checkpoint import checkpoint

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    layout = torch.channels_last if args.layout == "channels_last" else torch.contiguous_format
    before = memory_kib("VmRSS")
    model = getattr(torchvision.models, args.model)(num_classes=1000).to(memory_format=layout)
    if args.checkpoint:
        for stage in (model.layer1, model.layer2, model.layer3, model.layer4):
            for block in stage:
                whole = block.forward
                block.forward = lambda x, whole=whole: checkpoint(whole, x, use_reentrant=False)
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    images = torch.randn(args.batch, 3, args.image_size, args.image_size).to(memory_format=layout)
    labels = torch.randint(0, 1000, (args.batch,))
    times, losses = [], []
    for _ in range(args.steps):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        times.append((time.perf_counter() - start) * 1e3)
    print(json.dumps({
        "peer": "pytorch " + torch.__version__, "model": args.model, "batch": args.batch,
        "image_size": args.image_size, "threads": args.threads, "layout": args.layout,
        "checkpoint": args.checkpoint, "step_ms": times, "losses": losses,
        "rss_before_bytes": before * 1024, "rss_peak_bytes": memory_kib("VmHWM") * 1024,
    }))


if __name__ == "__main__":
    main()
