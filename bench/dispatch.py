"""Overhead of an operator call: thread CPU time, minimum over batches, ratios within one run.

Compares, in one process, `x + x` and others on float32[4] with the bare PJRT execute of the same
program; and, where they are installed in environments of their own (see docs), with JAX's eager calls
and Google's torch_tpu. Writes a table to the terminal and JSON and a picture to out/.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

BATCH = 2000
REPEATS = 25


def minimum_us(fn, finish, batch=BATCH, repeats=REPEATS) -> float:
    """Microseconds of this thread's CPU time a call; `finish` ends a batch, outside the time."""
    for _ in range(50):
        fn()
    finish()
    best = float("inf")
    for _ in range(repeats):
        start = time.thread_time_ns()
        for _ in range(batch):
            fn()
        spent = time.thread_time_ns() - start
        finish()
        best = min(best, spent / batch)
    return best / 1000


def wall_us(fn, finish, batch=BATCH, repeats=REPEATS) -> float:
    """Microseconds of wall time a call, the synchronise that ends a batch included."""
    for _ in range(50):
        fn()
    finish()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter_ns()
        for _ in range(batch):
            fn()
        finish()
        best = min(best, (time.perf_counter_ns() - start) / batch)
    return best / 1000


def calls(x, y):
    return {
        "x + x": lambda: x + x,
        "x.add_(y)": lambda: x.add_(y),
        "x + 1.0": lambda: x + 1.0,
        "x[1:3] * y[1:3]": lambda: x[1:3] * y[1:3],
        "x.view(2, 2).t() @ w": lambda: x.view(2, 2).t() @ y.view(2, 2),
        "x[0].item()": lambda: x[0].item(),
    }


def ours() -> dict:
    import torch

    import torch_tpu
    from torch_tpu import _C, compiler

    host = torch.ones(4)
    tpu = host.to("tpu")
    sync = torch.tpu.synchronize
    graph = compiler.CompiledGraph(lambda a: [a + a])
    graph(tpu)
    sync()
    bare = min(_C.bare_execute_ns(graph._graphs[0], [tpu], BATCH) for _ in range(REPEATS)) / 1000
    rows = {}
    device_calls, host_calls = calls(tpu, tpu.clone()), calls(host, host.clone())
    before = torch_tpu.counters()
    for name, fn in device_calls.items():
        rows[name] = {
            "tpu": minimum_us(fn, sync),
            "wall": wall_us(fn, sync),
            "cpu": minimum_us(host_calls[name], lambda: None),
        }
    after = torch_tpu.counters()
    handoffs = after["thread_handoffs"] - before["thread_handoffs"]
    launches = after["launches"] - before["launches"]
    return {"bare_execute": bare, "rows": rows, "thread_handoffs": handoffs, "launches": launches}


def peer_jax() -> dict:
    import jax.numpy as jnp

    x = jnp.ones(4)
    sync = lambda: (x + x).block_until_ready()  # noqa: E731
    return {"x + x": {"tpu": minimum_us(lambda: x + x, sync), "wall": wall_us(lambda: x + x, sync)}}


def peer_google() -> dict:
    import peer_init  # noqa: F401  loads Google's package on the same plugin
    import torch

    x = torch.ones(4, device="tpu")
    sync = torch.accelerator.synchronize
    rows = {}
    for name, fn in calls(x, x.clone()).items():
        repeats = 5 if "item" in name else REPEATS
        rows[name] = {"wall": wall_us(fn, sync, batch=500, repeats=repeats)}
    return rows


PEERS = {"jax": ("TORCH_TPU_BENCH_JAX_PYTHON", peer_jax), "google": ("TORCH_TPU_BENCH_GOOGLE_PYTHON", peer_google)}


def run_peer(name: str) -> dict | str:
    """The peer's rows, measured in a process of its own, or why there are none."""
    python = os.environ.get(PEERS[name][0])
    if not python:
        return f"skipped: {PEERS[name][0]} names no Python"
    done = subprocess.run([python, __file__, "--peer", name], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return f"failed: {done.stderr.strip().splitlines()[-1] if done.stderr else done.returncode}"
    return json.loads(done.stdout.splitlines()[-1])


def picture(result: dict, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(result["rows"])
    fig, ax = plt.subplots(figsize=(9, 4))
    ax.barh(names, [result["rows"][n]["tpu"] for n in names], label="tpu, strict")
    ax.barh(names, [result["rows"][n]["cpu"] for n in names], label="PyTorch CPU", height=0.4)
    ax.axvline(result["bare_execute"], color="black", linestyle="--", label="bare PJRT execute")
    ax.set_xlabel("µs a call (thread CPU time, minimum of batches)")
    ax.invert_yaxis()
    ax.legend()
    fig.tight_layout()
    fig.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", choices=list(PEERS))
    parser.add_argument("--out", type=Path, default=Path("out"))
    args = parser.parse_args()
    if args.peer:
        print(json.dumps(PEERS[args.peer][1]()))
        return
    result = ours()
    bare = result["bare_execute"]
    print(f"bare PJRT execute of x + x: {bare:.2f} µs")
    print(f"{'call':24}{'tpu µs':>9}{'/ bare':>8}{'/ CPU':>8}{'wall µs':>9}")
    for name, r in result["rows"].items():
        print(f"{name:24}{r['tpu']:9.2f}{r['tpu'] / bare:8.2f}{r['tpu'] / r['cpu']:8.2f}{r['wall']:9.2f}")
    print(f"launches {result['launches']}, handed to another thread {result['thread_handoffs']}")
    for name in PEERS:
        peer = run_peer(name)
        result[name] = peer
        if isinstance(peer, str):
            print(f"{name}: {peer}")
            continue
        for call, r in peer.items():
            ratio = r["wall"] / result["rows"][call]["wall"]
            print(f"{name}: {call}: {r['wall']:.2f} µs wall, {ratio:.1f} times ours")
    args.out.mkdir(exist_ok=True)
    (args.out / "dispatch.json").write_text(json.dumps(result, indent=1))
    picture(result, args.out / "dispatch.png")
    print(f"written: {args.out / 'dispatch.json'}, {args.out / 'dispatch.png'}")


if __name__ == "__main__":
    sys.exit(main())
