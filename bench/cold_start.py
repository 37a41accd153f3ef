"""What a first run costs: programs compiled by training steps, and the time of the first step, on
ours and on Google's torch_tpu 0.2.0 (where `make bench-peers` has set it up) over the same plugin.

    python bench/cold_start.py [--page docs/performance.md]

Each side and model is a process of its own with empty caches; ours runs a second time with what the
first left on disk. A step is forward, cross entropy, backward and AdamW.
"""

import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PEERS = HERE.parent / ".peers"
MODELS = ("mlp", "resnet18", "gpt")
BEGIN, END = "<!-- made by bench/cold_start.py -->", "<!-- end of cold start -->"


sys.path.insert(0, str(HERE))
import dispatch  # noqa: E402


def one(side: str, name: str) -> None:
    """In a process of its own: three steps; one line of JSON."""
    if side == "ours":
        os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
        import torch

        import torch_tpu

        def compiled() -> int:
            return torch_tpu.counters()["compiles"]

        synchronize = torch.tpu.synchronize
    else:
        import torch

        from torch_tpu import _loader

        _loader._init_device("tpu")
        torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEFER_NEVER)
        shim = ctypes.CDLL(os.environ["TPU_LIBRARY_PATH"])
        compiled = shim.PeerCompiles
        synchronize = torch.accelerator.synchronize
    import models

    models.SPELL_OUT_ATTENTION = True
    counts, seconds, losses = [], [], []
    (torch.ones(2, device="tpu") + 1).cpu()
    about = {"plugin": torch_tpu.info()["plugin"]} if side == "ours" else {}
    at_start = compiled()
    bench = models.Bench(name, "tpu")
    for _ in range(3):
        start = time.monotonic()
        loss = bench.step()
        synchronize()
        seconds.append(time.monotonic() - start)
        losses.append(loss.item())
        counts.append(compiled() - at_start)
    result = {"compiles": counts, "seconds": seconds, "losses": losses}
    print("RESULT " + json.dumps(about | result))


def ours(name: str, cache: str) -> dict:
    return run(sys.executable, "ours", name, {**os.environ, "TORCH_TPU_CACHE_DIR": cache})


def google(name: str, plugin: str) -> dict:
    python = PEERS / "google/bin/python"
    if not (PEERS / "google/.installed").exists():
        return {"error": "no environment: `make bench-peers` makes it"}
    return run(str(python), "google", name, dispatch.google_env(PEERS, plugin))


def run(python: str, side: str, name: str, env: dict[str, str]) -> dict:
    done = subprocess.run(
        [python, __file__, "--one", side, name], env=env, capture_output=True, text=True
    )
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line[7:])
    return {"error": (done.stderr.strip().splitlines() or ["no result"])[-1][:200]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--page", type=pathlib.Path, help="renew the table in this page")
    parser.add_argument("--models", default=",".join(MODELS))
    args = parser.parse_args()
    if args.one:
        return one(*args.one)
    lines = [
        "| model, one training step | programs, ours | programs, Google | first step, ours | "
        "Google | in a second process, ours |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name in args.models.split(","):
        with tempfile.TemporaryDirectory() as cache:
            sides = {"cold": ours(name, cache), "warm": ours(name, cache)}
            sides["google"] = google(name, sides["cold"]["plugin"])

        def cell(side: str, what: str, sides: dict = sides) -> str:
            r = sides[side]
            if "error" in r:
                return "–"
            return str(r["compiles"][-1]) if what == "compiles" else f"{r['seconds'][0]:.1f} s"

        print(name, json.dumps(sides), file=sys.stderr)
        lines.append(
            f"| {name} | {cell('cold', 'compiles')} | {cell('google', 'compiles')} | "
            f"{cell('cold', 's')} | {cell('google', 's')} | {cell('warm', 's')} |"
        )
        print(lines[-1], flush=True)
    if args.page:
        text = args.page.read_text()
        before, rest = text.split(BEGIN)
        _, after = rest.split(END)
        args.page.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after)


if __name__ == "__main__":
    main()
