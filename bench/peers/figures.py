"""What both peers report of memory."""

import json


def memory_bytes(key):
    """VmRSS or VmHWM of this process."""
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(key + ":"))


def print_result(result, times, losses, rss_before, gpu):
    """`gpu`: torch.cuda, or None on a CPU."""
    result.update(step_ms=times, losses=losses, rss_before_bytes=rss_before,
                  rss_peak_bytes=memory_bytes("VmHWM"))
    if gpu:
        result["allocated_peak_bytes"] = gpu.max_memory_allocated()
        result["reserved_peak_bytes"] = gpu.max_memory_reserved()
    print(json.dumps(result))
