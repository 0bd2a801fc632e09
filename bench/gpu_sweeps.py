#!/usr/bin/env python3
"""Sweeps of CP-ALS on dense tensors that lie in a GPU's memory, which td works on where they are: milliseconds, how often they read
the tensor in the time of MTTKRP, and what memory the run took beside the tensor. Needs the Python package td and PyTorch.

usage: gpu_sweeps.py SHAPE[,SHAPE...] RANK[,RANK...] [f64|f32 [GROUPS[,GROUPS...] [ITERATIONS]]]
  groups as option groups has them, with ';' for ','; "streamed:BYTES" leaves the GPU so many bytes, with the tensor on the host
"""
import statistics
import sys
import threading
import time

import numpy as np
import td
import torch


def copy_rate():
    """Bytes a second, read and written, as the floor of one read has it."""
    a = torch.empty(1 << 31, dtype=torch.uint8, device="cuda")
    b = torch.empty_like(a)
    times = []
    for _ in range(9):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        b.copy_(a)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return 2 * a.numel() / statistics.median(times)


class LeastFree(threading.Thread):
    """The least free memory of the GPU meanwhile."""

    def __init__(self):
        super().__init__(daemon=True)
        self.least = self.before = torch.cuda.mem_get_info()[0]
        self.ended = False

    def run(self):
        while not self.ended:
            self.least = min(self.least, torch.cuda.mem_get_info()[0])
            time.sleep(0.002)

    def taken(self):
        self.ended = True
        self.join()
        return self.before - self.least


def measure(x, shape, rank, groups, iterations, rate):
    keywords = {"groups": groups.replace(";", ","), "borrow": 1}
    context = "cuda"
    if groups.startswith("streamed:"):
        context = td.Context("cuda", device_memory_limit=int(float(groups[9:])))
        keywords["groups"] = "auto"
    tensor = td.tensor(x, context=context, **keywords)
    plan = td.plan(tensor, rank, context=context)
    watch = LeastFree()
    watch.start()
    # Start at random, no line of progress; the first iteration warms up.
    report = td.cpals(tensor, rank, context=context, tol=0, max_iters=iterations + 1, exact_residual="never", seed=1,
                      progress=False).report
    taken = watch.taken()
    elapsed = report.series("seconds")
    modes = np.asarray(report.series("mttkrp_seconds")).reshape(len(elapsed), -1)[1:].mean(axis=0)
    mttkrp = modes.sum()
    iteration = (elapsed[-1] - elapsed[0]) / iterations
    bytes_ = x.numel() * x.element_size() if hasattr(x, "numel") else x.nbytes
    streamed = plan["device_bytes.streamed"]
    print(f"  {'x'.join(map(str, shape)):<20} {str(x.dtype)[-7:]} R {rank:<5} {groups:<16} {plan['groups']:<28}: MTTKRP "
          f"{1e3 * mttkrp:9.3f} ms, {mttkrp * rate / bytes_:5.2f} passes, predicted {1e3 * plan['seconds.mttkrp']:9.3f} ("
          f"{' '.join(f'{1e3 * s:.3f}' for s in modes)} by mode); "
          f"iteration {1e3 * iteration:9.3f} ms, predicted {1e3 * plan['seconds.iteration']:9.3f}; {taken / 1e6:7.1f} MB beside"
          + (f"; {streamed / 1e9:.2f} GB streamed, {streamed / mttkrp / 1e9:.1f} GB/s" if streamed else ""), flush=True)


def main(shapes, ranks, kind="f64", groups="none,auto", iterations="12"):
    torch.cuda.init()
    rate = copy_rate()
    torch.cuda.empty_cache()
    print(f"{torch.cuda.get_device_name()}, copies {rate / 1e12:.2f} TB/s")
    dtype = {"f64": torch.float64, "f32": torch.float32}[kind]
    for name in shapes.split(","):
        shape = tuple(map(int, name.split("x")))
        # The first mode runs fastest, as in Fortran.
        x = torch.rand(shape[::-1], dtype=dtype, device="cuda").permute(*range(len(shape) - 1, -1, -1))
        torch.cuda.synchronize()
        for rank in map(int, ranks.split(",")):
            for some in groups.split(","):
                try:
                    on = x.cpu().numpy() if some.startswith("streamed:") else x
                    measure(on, shape, rank, some, int(iterations), rate)
                except td.TdError as error:
                    print(f"  {name} R {rank} {some}: {error}", flush=True)
        del x
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main(*sys.argv[1:])
