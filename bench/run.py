"""Benchmarks. A suite is a text in bench/suites: rows (a name, an expression), columns, inputs.

    python bench/run.py [SUITE ...] [--columns cpu,ours] [--rows 'x + x|x + 1.0'] [--page PAGE]

Each column is a process of its own. For a row all columns run in turn, a batch of calls at a time,
so that a busy machine is busy for all; a ratio is the median of the rounds' ratios to ours. Columns
that can't take part are left out with the reason. Writes SUITE.json, SUITE.md and SUITE.png to
bench_out/. With --page it measures nothing: the last runs' tables go into the page.
"""

import argparse
import json
import os
import platform
import re
import sys
import tempfile
import tomllib
from datetime import date
from pathlib import Path
from statistics import median, quantiles

import columns
import report
from columns import Died, Side, Skipped

SUITES = columns.ROOT / "bench/suites"
WARM_UP = 2  # rounds
BASE = "ours"


def load(suite: str) -> dict:
    """A suite by its name, or the path of one."""
    path = Path(suite) if suite.endswith(".toml") else SUITES / f"{suite}.toml"
    text = tomllib.loads(path.read_text())
    return {"name": path.stem, "inputs": {}, "goal": [], "tolerance": 1e-4, **text}


def spread(values: list[float]) -> dict:
    low, _, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return {"median": median(values), "min": min(values), "quartiles": [low, high]}


def request(suite: dict, row: dict, column: str) -> dict | None:
    """The row as a column's side wants it; None if it has no such row."""
    language = columns.language(column)
    text = row.get(column, row.get(language))
    if not text:
        return None
    return {language: text, "let": row.get("let", {}), "inputs": suite["inputs"]}


class Bench:
    """One suite's run: its sides, and why others are not there."""

    def __init__(self, suite: dict, args: argparse.Namespace):
        self.suite, self.args = suite, args
        self.rounds = args.rounds or suite["rounds"]
        wanted = args.columns.split(",") if args.columns else suite["columns"]
        self.columns = [BASE, *(c for c in wanted if c != BASE)]
        names = args.rows.split("|") if args.rows else [r["name"] for r in suite["row"]]
        self.rows = [r for r in suite["row"] if r["name"] in names]
        self.sides: dict[str, Side] = {}
        self.skipped: dict[str, str] = {}
        self.about: dict[str, dict] = {}

    def calls(self, row: dict) -> int:
        return self.args.calls or row.get("calls", self.suite["calls"])

    def start(self) -> None:
        for column in self.columns:
            try:
                side = columns.start(column, self.args.peers, self.about.get(BASE, {}))
            except Skipped as reason:
                self.skipped[column] = str(reason)
                continue
            self.sides[column], self.about[column] = side, side.about

    def ask(self, column: str, do: str, **more) -> dict:
        """The answer of a side; {"error": ...} if it can't. One that died is started again."""
        try:
            return self.sides[column].ask(do, **more)
        except Died as reason:
            self.sides[column] = self.sides[column].again()
            return {"error": f"died: {reason}"}

    def prepare(self, row: dict) -> dict[str, dict]:
        """Makes the row's call everywhere and compares what it gives; cells of those that can't."""
        failed, values = {}, {}
        for column in self.sides:
            asked = request(self.suite, row, column)
            answer = self.ask(column, "prepare", row=asked) if asked else {"error": ""}
            values[column] = answer.get("values", [])
            if "error" in answer:
                failed[column] = answer
        want = values.get("cpu") or values[BASE]
        for column, got in values.items():
            if column in failed or columns.language(column) in row.get("unchecked", []):
                continue
            within = self.suite["tolerance"]
            same = len(got) == len(want) and all(
                abs(a - b) <= within * (1 + abs(b)) for a, b in zip(got, want, strict=True)
            )
            if not same:
                failed[column] = {"error": f"gives {got[:3]}..., expected {want[:3]}..."}
        return failed

    def measure(self, row: dict) -> dict:
        """Cells of one row: for each clock the microseconds a call and the times ours."""
        cells = self.prepare(row)
        running = [c for c in self.sides if c not in cells]
        taken: dict[str, list[dict]] = {c: [] for c in running}
        for i in range(-WARM_UP, self.rounds):
            turn = i % len(running) if running else 0
            for column in running[turn:] + running[:turn]:
                if column in cells:
                    continue
                answer = self.ask(column, "batch", count=self.calls(row))
                if "error" in answer:
                    cells[column] = answer
                elif i >= 0:
                    taken[column].append(answer)
        base = taken.get(BASE) if BASE not in cells else None
        for column, batches in taken.items():
            if column in cells:
                continue
            cells[column] = {}
            for clock in ("wall", "cpu", "own"):
                cell = cells[column][clock] = {"us": spread([b[clock] for b in batches])}
                if base:
                    # A clock's tick can be longer than a batch: such rounds say nothing.
                    pairs = zip(batches, base, strict=True)
                    found = [b[clock] / o[clock] for b, o in pairs if o[clock] > 0]
                    cell["ratio"] = spread(found) if found else None
        return cells

    def run_calls(self) -> dict:
        self.start()
        try:
            before = self.ask(BASE, "counters")
            rows = {}
            for row in self.rows:
                rows[row["name"]] = self.measure(row)
                print(report.line(row["name"], rows[row["name"]]), file=sys.stderr, flush=True)
            after = self.ask(BASE, "counters")
        finally:
            for side in self.sides.values():
                side.close()
        counted = ("launches", "fallbacks", "compiles", "thread_handoffs")
        return {"rows": rows, "counters": {k: after.get(k, 0) - before.get(k, 0) for k in counted}}

    def first_run(self, column: str, row: dict, caches: str) -> dict:
        asked = request(self.suite, row, column)
        if asked is None:
            return {"error": ""}
        side = columns.start(column, self.args.peers, self.about.get(BASE, {}), caches)
        self.about[column] = side.about
        try:
            return side.ask("start", row=asked, count=self.calls(row))
        except Died as reason:
            return {"error": f"died: {reason}"}
        finally:
            side.close()

    def run_starts(self) -> dict:
        """Each cell: what a first process and a second one measured, a spread of each measure."""
        rows: dict[str, dict] = {}
        for row in self.rows:
            cells = rows[row["name"]] = {}
            found: dict[str, list[dict]] = {}
            for _ in range(self.rounds):
                for column in self.columns:
                    if column in self.skipped or "error" in cells.get(column, {}):
                        continue
                    with tempfile.TemporaryDirectory() as caches:
                        try:
                            first = self.first_run(column, row, caches)
                            second = self.first_run(column, row, caches)
                        except Skipped as reason:
                            self.skipped[column] = str(reason)
                            continue
                    if error := first.get("error", second.get("error")):
                        cells[column] = {"error": error}
                        continue
                    both = {**first, "second process s": second["first s"]}
                    found.setdefault(column, []).append(both)
            for column, runs in found.items():
                cells[column] = {
                    k: spread([r[k] for r in runs]) for k in runs[0] if runs[0][k] is not None
                }
            print(report.line(row["name"], cells), file=sys.stderr, flush=True)
        return {"rows": rows}

    def run(self) -> dict:
        load = os.getloadavg()[0]
        result = self.run_starts() if self.suite["kind"] == "start" else self.run_calls()
        machine = (
            f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        )
        shown = self.suite["columns"] if not self.args.columns else self.columns
        return {
            "suite": {k: self.suite.get(k) for k in ("name", "title", "kind", "unit", "goal")},
            "columns": [c for c in shown if c not in self.skipped],
            "skipped": self.skipped,
            "run": {
                "date": date.today().isoformat(),
                "machine": machine,
                "load": [load, os.getloadavg()[0]],
                "rounds": self.rounds,
                "about": self.about,
            },
            **result,
        }


def write_page(page: Path, out: Path) -> None:
    """Renews what the page holds of each suite."""

    def made(match: re.Match) -> str:
        kept = out / f"{match[1]}.json"
        if not kept.exists():
            print(f"{match[1]}: no run in {out}: left as it was", file=sys.stderr)
            return match[0]
        text = report.markdown(json.loads(kept.read_text()))
        return f"<!-- bench: {match[1]} -->\n{text}\n<!-- end -->"

    pattern = r"<!-- bench: (\w+) -->\n.*?<!-- end -->"
    page.write_text(re.sub(pattern, made, page.read_text(), flags=re.S))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suites", nargs="*", help="names in bench/suites, or files; default: all")
    parser.add_argument("--columns", help="with commas; default: the suite's")
    parser.add_argument("--rows", help="names with | between; default: all")
    parser.add_argument("--rounds", type=int, help="default: the suite's")
    parser.add_argument("--calls", type=int, help="a batch; default: the row's")
    parser.add_argument("--peers", type=Path, default=columns.ROOT / ".peers")
    parser.add_argument("--out", type=Path, default=Path("bench_out"))
    parser.add_argument("--page", type=Path, help="put the last runs' tables into this page")
    args = parser.parse_args()
    if args.page:
        return write_page(args.page, args.out)
    args.out.mkdir(exist_ok=True)
    for name in args.suites or sorted(p.stem for p in SUITES.glob("*.toml")):
        suite = load(name)
        print(f"== {suite['title']}", file=sys.stderr, flush=True)
        result = Bench(suite, args).run()
        text = report.markdown(result)
        print(f"\n## {suite['title']}\n\n{text}\n", flush=True)
        (args.out / f"{suite['name']}.json").write_text(json.dumps(result, indent=1))
        (args.out / f"{suite['name']}.md").write_text(text + "\n")
        report.picture(result, args.out / f"{suite['name']}.png")


if __name__ == "__main__":
    sys.exit(main())
