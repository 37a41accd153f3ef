"""One column of a benchmark, in a process of its own: side.py COLUMN.

It says in one line of JSON what it is, then answers requests, a line each: prepare a row, run a
batch of its calls, give its values. What it is not: a judge; rounds and tables are run.py's. Runs
in the peers' environments too: only numpy is sure.
"""

import functools
import gc
import json
import os
import resource
import sys
import time
import zlib
from collections.abc import Callable
from importlib.metadata import version
from itertools import repeat
from typing import Any

import numpy as np


def array(name: str, spec: list[int] | dict) -> np.ndarray:
    """An input of a suite's text: a shape, or {shape, dtype, high, fill}."""
    spec = spec if isinstance(spec, dict) else {"shape": spec}
    shape, dtype = spec["shape"], spec.get("dtype", "float32")
    random = np.random.default_rng(zlib.crc32(name.encode()))
    if "fill" in spec:
        return np.full(shape, spec["fill"], dtype)
    if "high" in spec:
        return random.integers(0, spec["high"], shape).astype(dtype)
    return random.standard_normal(shape).astype(dtype)


class Torch:
    """PyTorch's calls on a device."""

    language = "torch"

    def __init__(self, device: str, synchronize: Callable = lambda: None, wrap: Callable = None):
        import torch
        import torch.nn.functional as F

        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        import models

        self.torch, self.device, self.synchronize, self.wrap = torch, device, synchronize, wrap
        self.about = {"torch": torch.__version__}
        self.names = {"torch": torch, "F": F, "models": models, "np": np, "device": device}
        self.names["wrap"] = wrap or (lambda f: f)

    def put(self, a: np.ndarray, on_host: bool) -> Any:
        t = self.torch.from_numpy(a)
        return t if on_host else t.to(self.device)

    def finish(self, result: Any) -> None:
        self.synchronize()

    def values(self, result: Any) -> list[float]:
        if not self.torch.is_tensor(result):
            return [float(result)]
        flat = result.detach().cpu().double().flatten()
        return [flat.mean().item(), *flat[:8].tolist()]

    def counters(self) -> dict:
        return {}

    def peak_bytes(self) -> int | None:
        return None


class Ours(Torch):
    def __init__(self, mode: str = "strict", compiled: bool = False):
        os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
        import torch

        import torch_tpu

        torch_tpu.set_eager_mode(mode)
        torch.ones(1, device="tpu")
        wrap = functools.partial(torch.compile, backend="tpu") if compiled else None
        super().__init__("tpu", torch.tpu.synchronize, wrap)
        info = torch_tpu.info()
        names = ("plugin", "platform", "pjrt_api_minor", "version")
        self.about |= {name: info[name] for name in names}
        self.counters = torch_tpu.counters
        self.peak_bytes = torch.tpu.max_memory_allocated


class Program:
    """A function's program, run whole."""

    def __init__(self, function: Callable):
        from torch_tpu.compiler import CompiledGraph

        self.graph = CompiledGraph(lambda *inputs: [function(*inputs)])

    def __call__(self, *inputs: Any) -> Any:
        return self.graph(*inputs)[0]

    def execute_us(self, inputs: tuple, count: int) -> float:
        """One PJRT execute of it and nothing else, in this thread's CPU time."""
        from torch_tpu import _C

        return _C.bare_execute_ns(self.graph._graphs[0], list(inputs), count) / 1000


class Bare(Ours):
    """The floor under a call: its program, executed by the plugin alone."""

    language = "bare"

    def __init__(self):
        super().__init__()
        self.wrap = Program


class Google(Torch):
    def __init__(self, mode: str = "DEFER_NEVER"):
        import ctypes

        import torch

        from torch_tpu import _loader

        _loader._init_device("tpu")  # by itself it starts only where it sees a chip
        torch.tpu.set_eager_mode(torch.tpu.EagerMode[mode])
        super().__init__("tpu", torch.accelerator.synchronize)
        with open("/proc/self/maps") as maps:
            self.about["tcmalloc"] = "libtcmalloc" in maps.read()
        self.about["version"] = version("torch_tpu")
        shim = ctypes.CDLL(os.environ["TPU_LIBRARY_PATH"])
        self.counters = lambda: {"compiles": shim.PeerCompiles()}


class Jax:
    """JAX op by op, or jitted. It has no in-place writes."""

    language = "jax"

    def __init__(self, jit: bool = False):
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
        self.wrap = jax.jit if jit else None
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        import jax_models

        self.names = {"jax": jax, "jnp": jnp, "np": np, "models": jax_models, "device": ""}
        self.names["wrap"] = self.wrap or (lambda f: f)
        self.put = lambda a, on_host: a if on_host else jnp.asarray(a)
        self.finish = jax.block_until_ready
        self.peak_bytes = lambda: None
        self.counters = dict

    def values(self, result: Any) -> list[float]:
        if isinstance(result, float):
            return [result]
        flat = np.asarray(result, np.float64).flatten()
        return [float(flat.mean()), *flat[:8].tolist()]


def torch_compile() -> Torch:
    import torch

    return Torch("cpu", wrap=torch.compile)


COLUMNS: dict[str, Callable] = {
    "cpu": lambda: Torch("cpu"),
    "compile": torch_compile,
    "ours": Ours,
    "tcmalloc": Ours,
    "fuse": lambda: Ours("fuse"),
    "debug": lambda: Ours("debug"),
    "graph": lambda: Ours(compiled=True),
    "bare": Bare,
    "google": Google,
    "google_fuse": lambda: Google("DEFER_AND_FUSE"),
    "jax": Jax,
    "jit": lambda: Jax(jit=True),
}


def prepare(side: Any, row: dict) -> Callable:
    """The call of a row: its expression over the suite's inputs and what the row lets be. A plain
    expression is wrapped whole (torch.compile, jit); one with `let` wraps what it says."""
    text = row[side.language]
    names = dict(side.names)
    used = set(
        compile(" ".join([text, *(f"; {v}" for v in row["let"].values())]), "", "exec").co_names
    )
    given = {
        name: side.put(array(name, spec), isinstance(spec, dict) and spec.get("host", False))
        for name, spec in row["inputs"].items()
        if name in used
    }
    names |= given
    for name, value in row["let"].items():
        names[name] = eval(value, names)
    if side.wrap is None or row["let"]:
        return eval(f"lambda: {text}", names)
    function = eval(f"lambda {', '.join(given)}: {text}", names)
    return functools.partial(side.wrap(function), *given.values())


def batch(side: Any, call: Callable, count: int) -> dict:
    """Microseconds a call, the synchronise included: wall time, CPU time of the whole process (a
    side may work in other threads too), and of this thread."""
    program = getattr(call, "func", None)
    if isinstance(program, Program):
        return dict.fromkeys(("wall", "cpu", "own"), program.execute_us(call.args, count))
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


def start(side: Any, row: dict, count: int) -> dict:
    """A process's first calls: seconds of each, and what was compiled and held by their end."""
    before = side.counters().get("compiles")
    begin = time.monotonic()
    call = prepare(side, row)
    prepared = time.monotonic() - begin
    seconds = []
    for _ in range(count):
        begin = time.monotonic()
        side.finish(call())
        seconds.append(time.monotonic() - begin)
    peak, compiles = side.peak_bytes(), side.counters().get("compiles")
    return {
        "prepare s": prepared,
        "first s": seconds[0],
        "third s": seconds[-1],
        "programs": None if compiles is None else compiles - before,
        "device MB": None if peak is None else peak / 1e6,
        "process MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }


def main() -> None:
    # What a package prints of itself must not come between the answers.
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    side = COLUMNS[sys.argv[1]]()
    gc.disable()  # as timeit does: its pauses belong to no call
    print(json.dumps(side.about), file=out)
    call = None
    for line in sys.stdin:
        request = json.loads(line)
        do, count = request["do"], request.get("count", 1)
        try:
            if do == "prepare":
                call = None
                gc.collect()
                call = prepare(side, request["row"])
                answer = {"values": side.values(call())}
            elif do == "batch":
                answer = batch(side, call, count)
            elif do == "start":
                answer = start(side, request["row"], count)
            else:
                answer = side.counters()
        except Exception as error:
            said = (str(error).strip().splitlines() or [""])[0]
            answer = {"error": f"{type(error).__name__}: {said}"[:200]}
        print(json.dumps(answer), file=out)


if __name__ == "__main__":
    main()
