"""One side of the comparison of bench/dispatch.py, in a process of its own: side.py NAME.

It builds the same calls as every other side, says so in one line of JSON, then answers requests, a
line each: a batch of calls, ended by a synchronise, and what it took. What it is not: a judge; the
rounds, ratios and tables are dispatch.py's. Runs in the peers' environments: only numpy is sure.
"""

import gc
import json
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from itertools import repeat

import numpy as np

X, Y, V, W = (np.arange(1, n, dtype=np.float32) for n in (5, 5, 9, 9))
_random = np.random.default_rng(0)
MLP = {
    name: (_random.standard_normal(shape) / 8).astype(np.float32)
    for name, shape in {
        "input": (32, 64),
        "w1": (64, 64),
        "b1": (64,),
        "w2": (64, 10),
        "b2": (10,),
    }.items()
}


class TorchSide:
    """PyTorch's calls on a device; `synchronize` waits for all of it."""

    def __init__(self, device: str, synchronize: Callable[[], None], about: dict):
        import torch

        def put(a: np.ndarray) -> torch.Tensor:
            return torch.from_numpy(a.copy()).to(device)

        x, zeros, v, w = put(X), put(np.zeros_like(X)), put(V), put(W)
        y = put(Y).view(2, 2)
        mlp = torch.nn.Sequential(
            torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)
        ).requires_grad_(False)
        for layer, n in ((mlp[0], "1"), (mlp[2], "2")):
            layer.weight.copy_(torch.from_numpy(MLP["w" + n].T))
            layer.bias.copy_(torch.from_numpy(MLP["b" + n]))
        mlp.to(device)
        given = put(MLP["input"])
        self.calls = {
            "x + x": lambda: x + x,
            "x.add_(x)": lambda: zeros.add_(zeros),
            "x + 1.0": lambda: x + 1.0,
            "x[2:5] * y[2:5]": lambda: v[2:5] * w[2:5],
            "x.view(2, 2).t() @ w": lambda: x.view(2, 2).t() @ y,
            "x[0].item()": lambda: x[0].item(),
            "MLP forward": lambda: mlp(given),
        }
        self.finish = lambda _: synchronize()
        self.about = about
        self.values = lambda r: r.cpu().flatten().tolist() if torch.is_tensor(r) else [r]
        self.counters: Callable[[], dict] = dict

    def bare_execute_us(self, count: int) -> float | None:
        return None


class Ours(TorchSide):
    def __init__(self):
        os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
        import torch

        import torch_tpu
        from torch_tpu.compiler import CompiledGraph

        start = torch.ones(4, device="tpu")
        info = torch_tpu.info()
        about = {k: info[k] for k in ("plugin", "platform", "pjrt_api_minor", "version", "torch")}
        super().__init__("tpu", torch.tpu.synchronize, about)
        self.counters = torch_tpu.counters
        self.graph = CompiledGraph(lambda a: [a + a])
        self.graph(start)
        self.start = start

    def bare_execute_us(self, count: int) -> float:
        """x + x as a bare PJRT execute, in this thread's CPU time: the floor under a call."""
        from torch_tpu import _C

        return _C.bare_execute_ns(self.graph._graphs[0], [self.start], count) / 1000


def torch_cpu() -> TorchSide:
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    import torch

    return TorchSide("cpu", lambda: None, {"torch": torch.__version__})


def google() -> TorchSide:
    import torch

    from torch_tpu import _loader

    _loader._init_device("tpu")  # by itself it starts only where it sees a chip
    torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEFER_NEVER)
    with open("/proc/self/maps") as maps:
        tcmalloc = "libtcmalloc" in maps.read()
    about = {"version": version("torch_tpu"), "tcmalloc": tcmalloc}
    return TorchSide("tpu", torch.accelerator.synchronize, about)


class Jax:
    """The same calls in JAX, op by op: no jit. It has no in-place writes, so no add_."""

    def __init__(self):
        os.environ.setdefault("JAX_PLATFORMS", "peer")
        import jax
        import jax.numpy as jnp
        from jax._src import xla_bridge

        plugin = os.environ.get("PEER_PLUGIN")
        try:
            options = {"cpu_device_count": 1, "asynchronous": False}
            xla_bridge.register_plugin("peer", library_path=plugin, options=options)
            backend = "the same plugin" if jax.devices() else ""
        except Exception as error:  # an older plugin, or another JAX: say so, and use its own
            print(f"JAX can't use the plugin: {error}", file=sys.stderr)
            jax.config.update("jax_platforms", "cpu")
            backend = "its own CPU backend (it can't use the plugin)"
        self.about = {"jax": jax.__version__, "backend": backend}
        x, v, w, y = (jnp.asarray(a) for a in (X, V, W, Y.reshape(2, 2)))
        m = {name: jnp.asarray(a) for name, a in MLP.items()}
        given, w1, b1, w2, b2 = (m[n] for n in ("input", "w1", "b1", "w2", "b2"))
        self.calls = {
            "x + x": lambda: x + x,
            "x + 1.0": lambda: x + 1.0,
            "x[2:5] * y[2:5]": lambda: v[2:5] * w[2:5],
            "x.view(2, 2).t() @ w": lambda: x.reshape(2, 2).T @ y,
            "x[0].item()": lambda: x[0].item(),
            "MLP forward": lambda: jnp.maximum(given @ w1 + b1, 0) @ w2 + b2,
        }
        self.finish = lambda r: r.block_until_ready() if hasattr(r, "block_until_ready") else None
        self.values = lambda r: np.asarray(r).flatten().tolist()
        self.counters = dict

    def bare_execute_us(self, count: int) -> None:
        return None


SIDES = {"ours": Ours, "cpu": torch_cpu, "google": google, "jax": Jax}


def batch(side, call: Callable, count: int) -> dict:
    """Microseconds a call, the synchronise included: wall time, CPU time of the whole process (a
    side may work in other threads too), and of this thread."""
    clocks = {
        "wall": time.perf_counter_ns,
        "cpu": time.process_time_ns,
        "own": time.thread_time_ns,
    }
    result = None
    start = {name: clock() for name, clock in clocks.items()}
    for _ in repeat(None, count):
        result = call()
    side.finish(result)
    return {name: (clock() - start[name]) / count / 1000 for name, clock in clocks.items()}


def answer(side, request: dict) -> dict:
    count = request.get("count", 1)
    if request["do"] == "bare":
        return {"own": side.bare_execute_us(count)}
    if request["do"] == "counters":
        return side.counters()
    call = side.calls[request["row"]]
    if request["do"] == "values":
        return {"values": side.values(call())}
    return batch(side, call, count)


def main() -> None:
    # What a package prints of itself must not come between the answers.
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    side = SIDES[sys.argv[1]]()
    gc.disable()  # as timeit does: its pauses belong to no call
    print(json.dumps({"rows": list(side.calls), "about": side.about}), file=out)
    for line in sys.stdin:
        print(json.dumps(answer(side, json.loads(line))), file=out)


if __name__ == "__main__":
    main()
