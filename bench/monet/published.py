"""What MONeT's authors publish, as far as its text and repository give numbers."""

# The authors' repository (github.com/utsaslab/MONeT, README): batch, "GB" that PyTorch takes, and of
# MONeT's schedules "GB" and overhead in %, measured on a P100. Figure 3 draws them. These GB are GiB: the
# code divides torch.cuda.max_memory_allocated() by powers of 1024. unet3d: a share alone, of appendix J,
# which also says "almost no" overhead at 0.81.
GIB = 2**30
POINTS = {
    "resnet50": (184, 15.06, {10.01: 3.22, 9.01: 4.68, 8.01: 5.56, 6.99: 7.28, 6.00: 9.31, 4.99: 11.95}),
    "googlenet": (320, 14.93, {9.98: 7.13, 8.99: 7.87, 8.01: 8.44, 7.02: 9.71, 6.01: 12.14, 4.99: 15.77}),
    "unet": (11, 14.32, {10.01: -4.10, 9.01: -2.07, 8.02: -0.09, 7.00: 1.39, 6.01: 4.95, 5.01: 11.51}),
    "vgg16": (176, 14.12, {9.71: -5.30, 8.66: -4.64, 7.88: -2.18, 6.82: 1.99, 5.90: 5.44, 5.51: 9.11}),
    "mobilenet_v2": (272, 14.46, {10.02: 2.40, 9.01: 3.10, 8.02: 4.77, 7.01: 5.53, 6.01: 7.55, 5.01: 8.72}),
    "unet3d": (22, None, {0.54: 8.86}),
}
BATCHES = {network: point[0] for network, point in POINTS.items()}


# Table 7: % fewer than in Checkmate's program, on average, after presolving, for 10 GB.
FEWER = {"monet": {"variables": 40}, "monet-noop": {"variables": 67, "rows": 50}}


def least_gib(network, overhead):
    """GiB at which MONeT's points reach an overhead, between two of them, and whether they do; if not,
    the least GiB that they have. None: there are no points in GiB."""
    _, pytorch, series = POINTS[network]
    if pytorch is None:
        return None
    listed = sorted(series.items(), reverse=True)
    for (more, low), (less, high) in zip(listed, listed[1:]):
        if low <= overhead <= high:
            return more + (less - more) * (overhead - low) / (high - low), True
    return listed[-1][0], False
