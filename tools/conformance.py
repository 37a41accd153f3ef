"""Runs PyTorch's operator and module databases on tpu against the CPU and writes a report.

    python tools/conformance.py                      # everything; hours; resumes where it stopped
    python tools/conformance.py --checks forward --dtypes float32 --samples 6

Each (entry, dtype, check) is one line of results.jsonl in the output folder. Entries run in worker
processes: one that dies or hangs is recorded as such and costs nothing else. At the end (and with
--report alone) results become summary.json and report.html, and with --docs a page for docs/.
"""

import argparse
import collections
import html
import itertools
import json
import pathlib
import subprocess
import sys
import time

import workers

ROOT = pathlib.Path(__file__).resolve().parent.parent
DTYPES = ("float32", "float64", "bfloat16", "float16", "int8", "uint8", "int16", "int32", "int64",
          "bool", "complex64")  # fmt: skip
# The dtypes of checks that aren't made in all of them.
CHECKS = {
    "forward": DTYPES,
    "backward": ("float32", "float64"),
    "inplace": ("float32", "int64", "bfloat16"),
    "out": ("float32", "int64", "bfloat16"),
    "fake": ("float32", "int64"),
    "layouts": ("float32", "int64", "complex64"),
    "odd": ("complex64", "bool", "float8_e4m3fn"),
    "module": ("float32", "float64"),
}
TASK_SECONDS = 600


# --- The worker: one task a line in, one result a line out.


def work() -> None:
    sys.path.insert(0, str(ROOT / "tests" / "torch"))
    import module_database
    import op_database
    import torch

    ops = {op.full_name: op for op in op_database.entries()}
    modules = {m.name: m for m in module_database.entries()}
    for task, answer in workers.tasks():
        name, dtype = task["name"], getattr(torch, task["dtype"])
        start = time.monotonic()
        if task["check"] == "module":
            outcome, first = collections.Counter(), None
            for training in (False, True):
                one, text = module_database.run_entry(modules[name], dtype, training)
                outcome.update(one)
                first = first or text
        else:
            outcome, first = op_database.run_entry(ops[name], dtype, task["check"], task["samples"])
        result = {
            **task,
            "verdict": op_database.verdict(outcome),
            "outcome": dict(outcome),
            "first": first[1] if first else "",
            "seconds": round(time.monotonic() - start, 2),
        }
        answer(result)


# --- The driver.


def list_tasks(args: argparse.Namespace) -> list[dict]:
    """Asks a fresh process for the entries, so that this one never loads torch."""
    code = (
        "import op_database as o, module_database as m, torch, json\n"
        f"checks = {list(args.checks)!r}; dtypes = {json.dumps({c: CHECKS[c] for c in CHECKS})}\n"
        "out = []\n"
        "for c in checks:\n"
        "  for d in dtypes[c]:\n"
        "    t = getattr(torch, d)\n"
        "    for e in (m.entries() if c == 'module' else o.entries()):\n"
        "      if t in e.dtypes if c == 'module' else o.applies(e, t, c):\n"
        "        out.append([c, d, e.name if c == 'module' else e.full_name])\n"
        "print(json.dumps(out))\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "tests" / "torch", check=True, capture_output=True
    )
    wanted = set(args.dtypes or itertools.chain(*CHECKS.values()))
    return [
        {"check": c, "dtype": d, "name": n, "samples": args.samples}
        for c, d, n in json.loads(found.stdout.splitlines()[-1])
        if d in wanted and (not args.ops or n in args.ops)
    ]


def run(args: argparse.Namespace, out: pathlib.Path) -> None:
    from tqdm import tqdm

    results = out / "results.jsonl"
    again = ("failed", "missing") if args.retry else ()
    done = {key(r) for r in read(results) if r["verdict"] not in again}
    tasks = [t for t in list_tasks(args) if key(t) not in done]
    counts = collections.Counter()
    with results.open("a") as log, tqdm(total=len(tasks), unit="pair", smoothing=0.02) as bar:

        def finish(task: dict, result: dict | None, why: str) -> None:
            lost = {**task, "verdict": "failed", "outcome": {}, "first": why, "seconds": 0}
            log.write(json.dumps(result or lost) + "\n")
            log.flush()
            counts[(result or lost)["verdict"]] += 1
            bar.update()
            bar.set_postfix(counts, refresh=False)

        command = [sys.executable, __file__, "--worker"]
        workers.run(tasks, command, finish, jobs=args.jobs, seconds=TASK_SECONDS)


def key(r: dict) -> tuple:
    return (r["check"], r["dtype"], r["name"], r["samples"])


def read(path: pathlib.Path) -> list[dict]:
    if not path.exists():
        return []
    latest = {}
    for line in path.read_text().splitlines():
        r = json.loads(line)
        latest[key(r)] = r
    return list(latest.values())


def whole(r: dict) -> bool:
    """Whether the entry has no more samples than were run."""
    return r["samples"] is None or r["check"] == "module" or tried(r) < r["samples"]


def tried(r: dict) -> int:
    return sum(r["outcome"].values())


def best(results: list[dict]) -> list[dict]:
    """Of the runs of a pair, the one with most samples."""
    pairs = {}
    for r in sorted(results, key=lambda r: (r["samples"] is None, r["samples"])):
        pairs[r["check"], r["dtype"], r["name"]] = r
    return list(pairs.values())


# --- The report.


def rate(c: collections.Counter) -> str:
    compared = c["passed"] + c["failed"] + c["missing"]
    return f"{100 * c['passed'] / compared:.2f} %" if compared else "-"


VERDICTS = ("passed", "failed", "missing", "none")
COLUMNS = (
    "check", "dtype", "passed", "failed", "missing", "nothing to compare", "rate", "samples",
    "pairs with all samples",
)  # fmt: skip


def rows(results: list[dict]) -> list[list[str]]:
    table: dict = collections.defaultdict(collections.Counter)
    for r in results:
        table[r["check"], r["dtype"]].update(
            {r["verdict"]: 1, "pairs": 1, "samples": tried(r), "whole": int(whole(r))}
        )
    order = list(CHECKS), [*DTYPES, "float8_e4m3fn"]
    where = lambda k: (order[0].index(k[0]), order[1].index(k[1]))  # noqa: E731
    return [
        [*k, *(str(c[v]) for v in VERDICTS), rate(c), str(c["samples"]),
         f"{100 * c['whole'] // c['pairs']} %"]
        for k, c in sorted(table.items(), key=lambda item: where(item[0]))
    ]  # fmt: skip


def write_report(out: pathlib.Path, docs: pathlib.Path | None) -> None:
    results = best(read(out / "results.jsonl"))
    table = rows(results)
    bad = sorted(
        (r for r in results if r["verdict"] in ("failed", "missing")),
        key=lambda r: (r["verdict"], r["name"], r["check"], r["dtype"]),
    )
    summary = [dict(zip(COLUMNS, row, strict=True)) for row in table]
    (out / "summary.json").write_text(json.dumps({"pairs": summary, "bad": bad}, indent=1))

    def line(cells: list[str], tag: str = "td") -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(c))}</{tag}>" for c in cells) + "</tr>"

    fields = ("verdict", "name", "check", "dtype", "outcome", "first")
    (out / "report.html").write_text(
        "<!doctype html><meta charset=utf-8><title>Conformance</title><style>body{font:14px "
        "sans-serif;margin:2em}td,th{padding:2px 10px;text-align:left;vertical-align:top}"
        "tr:nth-child(even){background:#f3f3f3}</style><h1>Conformance with PyTorch's CPU</h1>"
        "<table>" + line(list(COLUMNS), "th") + "".join(map(line, table)) + "</table>"
        f"<h2>{len(bad)} pairs that don't pass</h2><table>" + line(list(fields), "th")
        + "".join(line([r[f] for f in fields]) for r in bad) + "</table>"
    )  # fmt: skip
    for row in [list(COLUMNS), *table]:
        print("  ".join(f"{c:>12}" for c in row))
    print(f"{out / 'report.html'}")
    if docs:
        docs.write_text(page(results, table, bad))


def page(results: list[dict], table: list[list[str]], bad: list[dict]) -> str:
    """The page in docs/."""
    causes = exceptions()
    bounds = sorted({r["samples"] for r in results if not whole(r)})
    bound = "This run: all samples of every entry."
    if bounds:
        bound = (
            "This run: all samples of every entry where the last column says 100 %; elsewhere, of\n"
            f"entries that have more, at least the first {' or '.join(map(str, bounds))}."
        )
    lines = [
        "# Conformance with PyTorch's CPU",
        "",
        "Made by `make conformance` (`tools/conformance.py`): PyTorch's own operator and module",
        "databases on `tpu` (CPU plugin) against PyTorch's CPU, with the fallback off. A pair is",
        "one entry in one dtype; it passes if all its samples do. Missing: a kernel that the table",
        "lacks or refuses (counted as not passed). Nothing to compare: the CPU gives no result.",
        "[op_exceptions.py](../tests/torch/op_exceptions.py) lists what is treated apart, and why:",
        "random results, sparse tensors, ties, strides, tolerances, and where the CPU is wrong.",
        "",
        bound,
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|---|---|" + "---:|" * (len(COLUMNS) - 2),
        *("| " + " | ".join(row) + " |" for row in table),
        "",
        "## What doesn't pass",
        "",
        "| entry | check | dtypes | why |",
        "|---|---|---|---|",
    ]
    groups: dict = {}
    for r in bad:
        groups.setdefault((r["name"], r["check"], r["verdict"]), []).append(r)
    for (name, check, _), members in groups.items():
        first = members[0]["first"].replace("\n", " ").replace("|", "\\|")[:160]
        why = causes.get(name, first)
        lines.append(f"| `{name}` | {check} | {', '.join(r['dtype'] for r in members)} | {why} |")
    return "\n".join(lines) + "\n"


def exceptions() -> dict[str, str]:
    """What is known of entries that don't pass (tests/torch/op_exceptions.py loads nothing)."""
    sys.path.insert(0, str(ROOT / "tests" / "torch"))
    import op_exceptions

    return op_exceptions.CAUSES


def main() -> None:
    if sys.argv[1:] == ["--worker"]:
        return work()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    words = lambda text: text.split(",")  # noqa: E731
    parser.add_argument("ops", nargs="*", help="entries by name (all)")
    parser.add_argument("--checks", type=words, default=list(CHECKS), help=",".join(CHECKS))
    parser.add_argument("--dtypes", type=words, help=",".join(DTYPES))
    parser.add_argument("--samples", type=int, help="samples of an entry (all)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "out" / "conformance")
    parser.add_argument("--retry", action="store_true", help="run again what didn't pass")
    parser.add_argument("--report", action="store_true", help="write the report only")
    parser.add_argument("--docs", type=pathlib.Path, help="also write this Markdown page")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if not args.report:
        run(args, args.out)
    write_report(args.out, args.docs)


if __name__ == "__main__":
    main()
