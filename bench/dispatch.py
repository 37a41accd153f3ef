"""Overhead of an operator call: ours against PyTorch's CPU and, where `make bench-peers` has set
them up, JAX op by op and Google's torch_tpu, all but PyTorch's CPU on the same PJRT plugin.

Each side is a process of its own (bench/peers/side.py). Rounds alternate between them, one batch of
calls at a time, so that a busy machine is busy for all; ratios are medians of the rounds' ratios.
Prints tables in Markdown; writes dispatch.json and a picture to bench_out/. With --page PAGE it
measures nothing: the last run's tables go into the page.
"""

import argparse
import ctypes.util
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).resolve().parent.parent
SIDE = ROOT / "bench/peers/side.py"
TITLES = {
    "jax": "JAX",
    "google": "Google",
    "cpu": "PyTorch CPU",
    "ours": "ours",
    "ours_tcmalloc": "ours, tcmalloc",
}
# Calls in a batch; a batch ends in one synchronise.
BATCHES = {
    "x + x": 1000,
    "x.add_(x)": 1000,
    "x + 1.0": 1000,
    "x[2:5] * y[2:5]": 400,
    "x.view(2, 2).t() @ w": 400,
    "x[0].item()": 200,
    "MLP forward": 200,
}
GOOGLE_FACTORS = {"x + x": 4, "x[0].item()": 20}
GOOGLE_FACTOR = 3
MARKS = ("<!-- made by bench/dispatch.py -->", "<!-- end -->")


class Skipped(Exception):
    """Why a side takes no part."""


class Side:
    """The process of one side, and its batches."""

    def __init__(self, name: str, python: str, env: dict[str, str], program: str = ""):
        # Not a pipe: one that nobody reads fills up.
        errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            [python, str(SIDE), program or name],
            env=env,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            errors.seek(0)
            said = errors.read().strip().splitlines() or ["no message"]
            raise Skipped(f"{name} does not start: {said[-1]}")
        hello = json.loads(line)
        self.rows, self.about = hello["rows"], hello["about"]
        self.batches: dict[str, list[dict]] = {row: [] for row in self.rows}

    def ask(self, do: str, **request) -> dict:
        self.process.stdin.write(json.dumps({"do": do, **request}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        self.process.communicate()


def peer_env(plugin: str) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}  # not our torch_tpu
    return env | {"PEER_PLUGIN": plugin, "TF_CPP_MIN_LOG_LEVEL": "3"}


def preload() -> dict[str, str]:
    """What Google's package recommends."""
    tcmalloc = ctypes.util.find_library("tcmalloc_minimal")
    return {"LD_PRELOAD": tcmalloc} if tcmalloc else {}


def google_env(peers: Path, plugin: str) -> dict[str, str]:
    """What Google's torch_tpu needs to run on a CPU plugin."""
    return (
        peer_env(plugin)
        | preload()
        | {
            "TPU_LIBRARY_PATH": str((peers / "plugin_shim.so").resolve()),
            "TPU_SKIP_MDS_QUERY": "1",
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
            "PYTHONWARNINGS": "ignore",
        }
    )


def start_peer(name: str, peers: Path, ours: dict) -> Side:
    python = peers / name / "bin/python"
    if not (peers / name / ".installed").exists():
        raise Skipped(f"no environment {peers.name}/{name}: `make bench-peers` makes it")
    if ours["platform"] != "cpu":
        raise Skipped(f"measured on a CPU plugin only, not on {ours['platform']}")
    plugin = ours["plugin"]
    env = google_env(peers, plugin) if name == "google" else peer_env(plugin)
    return Side(name, str(python), env)


def start(peers: Path) -> tuple[dict[str, Side], dict[str, str]]:
    """The sides that start, in the order of the table, and why others do not."""
    ours = Side("ours", sys.executable, dict(os.environ))
    sides, skipped = {}, {}
    for name in ("jax", "google"):
        try:
            sides[name] = start_peer(name, peers, ours.about)
        except Skipped as reason:
            skipped[name] = str(reason)
    sides["cpu"] = Side("cpu", sys.executable, dict(os.environ))
    sides["ours"] = ours
    if preload():  # Google's side has it, so what would it do for ours?
        env = dict(os.environ) | preload()
        sides["ours_tcmalloc"] = Side("ours_tcmalloc", sys.executable, env, program="ours")
    return sides, skipped


def check_values(sides: dict[str, Side]) -> None:
    """Every side computes the same thing, to float32 rounding."""
    for row in BATCHES:
        expected = sides["cpu"].ask("values", row=row)["values"]
        for name, side in sides.items():
            if row not in side.rows:
                continue
            got = side.ask("values", row=row)["values"]
            same = len(got) == len(expected) and all(
                abs(a - b) < 1e-4 * (1 + abs(b)) for a, b in zip(got, expected, strict=True)
            )
            if not same:
                raise SystemExit(f"{name}: {row} gives {got}, PyTorch's CPU {expected}")


def measure(sides: dict[str, Side], rounds: int, scale: float) -> list[float]:
    """Fills the sides' batches; returns the µs of the bare executes that ran between them."""
    bare = []
    names = list(sides)
    for i in range(-2, rounds):  # the first two warm up
        for row, calls in BATCHES.items():
            for name in names[i % len(names) :] + names[: i % len(names)]:
                if row not in sides[name].rows:
                    continue
                took = sides[name].ask("batch", row=row, count=max(1, int(calls * scale)))
                if i >= 0:
                    sides[name].batches[row].append(took)
        if i >= 0:
            bare.append(sides["ours"].ask("bare", count=max(1, int(1000 * scale)))["own"])
    return bare


def spread(values: list[float]) -> dict:
    low, _, high = quantiles(values, n=4) if len(values) > 1 else values * 3
    return {"median": median(values), "min": min(values), "quartiles": [low, high]}


def summary(sides: dict[str, Side], bare: list[float]) -> dict:
    """For each row and clock ("wall", "cpu": the whole process, "own": the calling thread) each
    side's microseconds a call, and how many times ours that is, round by round."""
    rows = {}
    for row in BATCHES:
        taken = {name: s.batches[row] for name, s in sides.items() if row in s.rows}
        rows[row] = {
            clock: {
                name: {
                    "us": spread([b[clock] for b in batches]),
                    "times_ours": spread(
                        [b[clock] / o[clock] for b, o in zip(batches, taken["ours"], strict=True)]
                    ),
                }
                for name, batches in taken.items()
            }
            for clock in ("wall", "cpu", "own")
        }
    return {"rows": rows, "bare_execute_us": spread(bare)}


def goals(result: dict) -> list[tuple[str, float, dict[str, float]]]:
    """(what, the least that is wanted, what was measured by each clock); a goal whose side is
    absent is left out."""
    rows, found = result["rows"], []

    def times_ours(row: str, name: str, wanted: float) -> None:
        if name in rows[row]["wall"]:
            measured = {c: rows[row][c][name]["times_ours"]["median"] for c in ("wall", "cpu")}
            found.append((f"`{row}`, {TITLES[name]} / ours", wanted, measured))

    times_ours("x + x", "jax", 1)
    times_ours("x + x", "jax", 2)
    times_ours("x + x", "google", 2)
    for row in rows:
        times_ours(row, "google", GOOGLE_FACTORS.get(row, GOOGLE_FACTOR))
    own = rows["x + x"]["own"]["cpu"]["times_ours"]["median"]
    found.append(("`x + x`, PyTorch CPU / ours, own time", 0.25, {"cpu": own}))
    item = {c: 12 / rows["x[0].item()"][c]["ours"]["us"]["median"] for c in ("wall", "cpu")}
    found.append(("`x[0].item()`, 12 µs / ours", 1, item))
    return found


def middle_and_least(value: dict, digits: int = 1) -> str:
    return f"{value['median']:.{digits}f} ({value['min']:.{digits}f})"


def middle_and_quartiles(value: dict) -> str:
    low, high = value["quartiles"]
    return f"{value['median']:.2f} ({low:.2f}–{high:.2f})"


def markdown(lines: list[list[str]]) -> str:
    rule = ["---", *["---:"] * (len(lines[0]) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [lines[0], rule, *lines[1:]])


def goal_table(result: dict) -> str:
    lines = [["goal", "at least", "wall time", "CPU time"]]
    for what, wanted, measured in goals(result):
        cells = {
            clock: f"{value:.2f}" if value >= wanted else f"**short** {value:.2f}"
            for clock, value in measured.items()
        }
        lines.append([what, f"{wanted:g}", cells.get("wall", "–"), cells.get("cpu", "–")])
    return markdown(lines)


def times(result: dict, clock: str) -> str:
    names = result["sides"]
    lines = [["µs a call, median (minimum)", *(TITLES[n] for n in names)]]
    for row, clocks in result["rows"].items():
        taken = clocks[clock]
        cells = [middle_and_least(taken[n]["us"]) if n in taken else "–" for n in names]
        lines.append([f"`{row}`", *cells])
    return markdown(lines)


def ratios(result: dict) -> str:
    columns = [(n, c) for n in result["sides"] if n != "ours" for c in ("wall", "cpu")]
    words = {"wall": "wall", "cpu": "CPU"}
    lines = [["times ours, median (quartiles)", *(f"{TITLES[n]}, {words[c]}" for n, c in columns)]]
    for row, clocks in result["rows"].items():
        cells = [
            middle_and_quartiles(clocks[c][n]["times_ours"]) if n in clocks[c] else "–"
            for n, c in columns
        ]
        lines.append([f"`{row}`", *cells])
    return markdown(lines)


def report(result: dict) -> str:
    run = result["run"]
    own = {name: s["us"] for name, s in result["rows"]["x + x"]["own"].items()}
    ours, cpu, bare = (
        middle_and_least(v, 2) for v in (own["ours"], own["cpu"], result["bare_execute_us"])
    )
    text = [
        f"{run['date']}: {run['machine']}, load {run['load'][0]:.1f} at the start and "
        f"{run['load'][1]:.1f} at the end; {run['rounds']} rounds. {run['sides']}",
        *(f"{TITLES[name]}: skipped: {why}." for name, why in result["skipped"].items()),
        "Wall time:",
        times(result, "wall"),
        "CPU time of the whole process:",
        times(result, "cpu"),
        "Ratios:",
        ratios(result),
        f"The calling thread's own CPU time for `x + x`, µs: ours {ours}, PyTorch CPU {cpu}; a "
        f"bare PJRT execute of the same program {bare}. Ours, in {run['launches']} launches: "
        f"{run['fallbacks']} fallbacks, {run['compiles']} compiles, {run['thread_handoffs']} "
        "hand-offs to another thread.",
        goal_table(result),
    ]
    return "\n\n".join(text)


def about(sides: dict[str, Side]) -> str:
    ours = sides["ours"].about
    api = f"PJRT 0.{ours['pjrt_api_minor']}"
    say = [f"torch {ours['torch']}, {Path(ours['plugin']).name} ({api})"]
    if "jax" in sides:
        say.append(f"JAX {sides['jax'].about['jax']} on {sides['jax'].about['backend']}")
    if "google" in sides:
        google = sides["google"].about
        tcmalloc = "with" if google["tcmalloc"] else "without"
        say.append(f"torch_tpu {google['version']} on the same plugin, {tcmalloc} tcmalloc")
    return "; ".join(say) + "."


def picture(result: dict, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows, names = list(result["rows"]), result["sides"]
    fig, axes = plt.subplots(1, 2, figsize=(12, 1 + 0.7 * len(rows)), sharey=True)
    height = 0.8 / len(names)
    for ax, clock, words in zip(axes, ("wall", "cpu"), ("wall time", "CPU time"), strict=True):
        for i, name in enumerate(names):
            bars = [
                (k + (i - (len(names) - 1) / 2) * height, clocks[clock][name]["us"]["median"])
                for k, clocks in enumerate(result["rows"].values())
                if name in clocks[clock]
            ]
            ax.barh(*zip(*bars, strict=True), height=height, label=TITLES[name])
        ax.set_xscale("log")
        ax.set_xlabel(f"µs of {words} a call, median of batches that end in a synchronise")
    axes[0].set_yticks(range(len(rows)), rows)
    axes[0].invert_yaxis()
    axes[1].legend()
    fig.tight_layout()
    fig.savefig(path, dpi=120)
    plt.close(fig)


def run(args: argparse.Namespace) -> dict:
    load = os.getloadavg()[0]
    sides, skipped = start(args.peers)
    try:
        check_values(sides)
        before = sides["ours"].ask("counters")
        bare = measure(sides, args.rounds, args.scale)
        after = sides["ours"].ask("counters")
        result = summary(sides, bare)
    finally:
        for side in sides.values():
            side.close()
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    counted = ("launches", "fallbacks", "compiles", "thread_handoffs")
    result |= {"sides": list(sides), "skipped": skipped}
    result["run"] = {
        "date": date.today().isoformat(),
        "machine": machine,
        "load": [load, os.getloadavg()[0]],
        "rounds": args.rounds,
        "sides": about(sides),
        **{name: after[name] - before[name] for name in counted},
    }
    result["batches"] = {name: side.batches for name, side in sides.items()}
    return result


def write_page(page: Path, result: dict) -> None:
    begin, end = MARKS
    text = page.read_text()
    made = f"{begin}\n{report(result)}\n{end}"
    page.write_text(re.sub(f"{begin}.*?{end}", lambda _: made, text, count=1, flags=re.S))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path, default=ROOT / ".peers")
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--scale", type=float, default=1.0, help="of the batches' lengths")
    parser.add_argument("--out", type=Path, default=Path("bench_out"))
    parser.add_argument("--page", type=Path, help="put the last run's table into this page")
    args = parser.parse_args()
    kept = args.out / "dispatch.json"
    if args.page:
        write_page(args.page, json.loads(kept.read_text()))
        return
    result = run(args)
    print(report(result))
    args.out.mkdir(exist_ok=True)
    kept.write_text(json.dumps(result, indent=1))
    picture(result, args.out / "dispatch.png")
    print(f"\nwritten: {kept}, {args.out / 'dispatch.png'}")


if __name__ == "__main__":
    sys.exit(main())
