"""Runs examples/digits.py on "tpu" and on "cpu" with the same seeds, and compares: `make demo`.

The example knows nothing of this package; what the table says about programs, launches and memory
comes from the counters, read from outside after each training step.
"""

import argparse
import importlib.util
import json
import os
import statistics
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

os.environ.setdefault("TORCH_TPU_FALLBACK", "error")

import torch  # noqa: E402

import torch_tpu  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
MIN_CNN_ACCURACY = 97.0  # percent
MAX_DIFFERENCE = 1.0  # points, between the means over the seeds


def load_example():
    spec = importlib.util.spec_from_file_location("digits", ROOT / "examples" / "digits.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["digits"] = module
    spec.loader.exec_module(module)
    return module


@dataclass
class Counts:
    """What the device did during one run."""

    compiles: int = 0
    from_disk: int = 0
    launches: int = 0
    fallbacks: int = 0
    third_step_compiles: int = -1
    peak_bytes: int = 0


class Meter:
    """Counters of one training run; called after each of its steps."""

    def __init__(self) -> None:
        self.start = torch_tpu.counters()
        self.steps = 0
        self.compiles_after = {}
        torch.tpu.reset_peak_memory_stats()

    def __call__(self) -> None:
        self.steps += 1
        if self.steps in (2, 3):
            torch.tpu.synchronize()  # compiles go on beside the calls: all of them, please
            self.compiles_after[self.steps] = torch_tpu.counters()["compiles"]

    def counts(self) -> Counts:
        torch.tpu.synchronize()
        now = torch_tpu.counters()
        d = {name: now[name] - self.start.get(name, 0) for name in now}
        return Counts(
            compiles=d["compiles"],
            from_disk=d["disk_hits"],
            launches=d["launches"],
            fallbacks=d["fallbacks"],
            third_step_compiles=self.compiles_after[3] - self.compiles_after[2],
            peak_bytes=torch.tpu.max_memory_allocated(),
        )


def run_all(digits, args) -> tuple[list, dict]:
    """Every model with every seed on both devices; the counts by (model, seed) of the tpu's."""
    runs, counts = [], {}
    for model in args.models:
        for seed in range(args.seeds):
            meter = Meter()
            for device, each_step in (("tpu", meter), ("cpu", lambda: None)):
                print(f"training {model}, seed {seed}, on {device} ...", flush=True)
                runs.append(digits.train(model, device, seed, args.out, args.epochs, each_step))
                print(f"  {runs[-1].accuracy:.2f} % in {runs[-1].seconds:.1f} s", flush=True)
                if device == "tpu":
                    counts[model, seed] = meter.counts()
    return runs, counts


def print_table(runs: list, counts: dict) -> None:
    head = (
        "model",
        "seed",
        "device",
        "accuracy",
        "time",
        "compiled",
        "from disk",
        "launches",
        "fallbacks",
        "peak memory",
    )
    rows = []
    for r in runs:
        row = [r.model, str(r.seed), r.device, f"{r.accuracy:.2f} %", f"{r.seconds:.1f} s"]
        if r.device == "tpu":
            c = counts[r.model, r.seed]
            row += [
                c.compiles,
                c.from_disk,
                c.launches,
                c.fallbacks,
                f"{c.peak_bytes / 2**20:.1f} MiB",
            ]
        else:
            row += ["-"] * 5
        rows.append([str(x) for x in row])
    widths = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(x.rjust(w) for x, w in zip(row, widths, strict=True)))


def complaints(runs: list, counts: dict, full: bool) -> list[str]:
    """What the demo promises and did not keep."""
    out = []
    for (model, seed), c in counts.items():
        if c.fallbacks:
            out.append(f"{model}, seed {seed}: {c.fallbacks} operators fell back to the CPU")
        if c.third_step_compiles:
            out.append(f"{model}, seed {seed}: step 3 compiled {c.third_step_compiles} programs")
    if not full:
        return out
    for model in sorted({r.model for r in runs}):
        mean = {
            device: statistics.mean(
                r.accuracy for r in runs if (r.model, r.device) == (model, device)
            )
            for device in ("tpu", "cpu")
        }
        print(f"{model}: mean accuracy {mean['tpu']:.2f} % on tpu, {mean['cpu']:.2f} % on cpu")
        if abs(mean["tpu"] - mean["cpu"]) > MAX_DIFFERENCE:
            out.append(f"{model}: the devices' means are more than {MAX_DIFFERENCE} point apart")
        if model == "cnn" and mean["tpu"] < MIN_CNN_ACCURACY:
            out.append(f"cnn: {mean['tpu']:.2f} % is less than {MIN_CNN_ACCURACY} %")
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["cnn", "vit"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--epochs", type=int, help="instead of each model's own (accuracy unchecked)"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "out")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    digits = load_example()
    runs, counts = run_all(digits, args)
    digits.plot(runs, args.out / "digits.png")
    print()
    print_table(runs, counts)
    wrong = complaints(runs, counts, full=args.epochs is None)
    report = {
        "compiles": sum(c.compiles for c in counts.values()),
        "fallbacks": sum(c.fallbacks for c in counts.values()),
        "runs": [asdict(r) for r in runs],
        "counts": {f"{model}-{seed}": asdict(c) for (model, seed), c in counts.items()},
        "complaints": wrong,
    }
    (args.out / "digits.json").write_text(json.dumps(report, indent=1))
    print(f"curves: {args.out / 'digits.png'}")
    for line in wrong:
        print(f"FAILED  {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
