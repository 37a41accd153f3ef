"""Compiles every row's programs for TPUs that aren't there, with libtpu at eager mode's effort.

    python tools/tpu_check.py                    # collect, compile, report; resumes
    python tools/tpu_check.py --chips v5e cumsum # some entries of op_db, one chip

1. Collect: PyTorch's operator database (and tools/tpu_check_calls.py) runs on a CPU plugin with
   the capabilities of a TPU, TORCH_TPU_DUMP_DIR keeping each call's program.
2. Select: for each row at most one program for each dtype, the largest.
3. Compile each for each chip in worker processes; a compile that dies or hangs costs itself only.
4. Report: a table on the screen; with --docs also docs/tpu_check.md, and the .json that
   docs/ops.md is made with.

It says nothing of values: what a chip computes only a chip can tell.
"""

import argparse
import collections
import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import sys
import time

import workers
from tqdm import tqdm

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOPOLOGIES = {"v5e": "v5e:2x2", "v6e": "v6e:2x2", "tpu7x": "tpu7x:2x2x1"}
DTYPES = ("float32", "bfloat16", "int64", "bool", "complex64")
SAMPLES = {"float32": 6}  # of an entry; the other dtypes: 2
ELEMENTS = 100_000  # of an elementwise operator's long sample
SLOW = 10.0  # seconds of compile that no program should take
HANG = 300.0
MUST = ("done", "partial")  # statuses of rows that have programs
COST = ("flops", "bytes accessed", "optimal_seconds")
COLLECT_ENV = {
    "TORCH_TPU_FALLBACK": "error",
    "TORCH_TPU_DISABLE_CAPABILITIES": "linear_layout,host_readable,inline_execute,native_64bit",
}


# --- Workers.


def collect_worker() -> None:
    sys.path.insert(0, str(ROOT / "tests" / "torch"))
    import op_database
    import torch
    import tpu_check_calls

    from torch_tpu import _C

    ops = {op.full_name: op for op in op_database.entries()}
    for task, answer in workers.tasks():
        _C.set_flag("dump_dir", os.path.join(task["dump"], task["dtype"]))
        with contextlib.suppress(Exception):  # what raises is conformance's business
            if task["name"] in tpu_check_calls.CALLS:
                tpu_check_calls.CALLS[task["name"]][0](task["dtype"])
            else:
                run_entry(op_database, ops[task["name"]], getattr(torch, task["dtype"]))
        with contextlib.suppress(Exception):
            torch.tpu.synchronize()
        answer({})


def run_entry(op_database, op, dtype) -> None:
    import itertools

    import torch
    from torch.testing._internal.common_methods_invocations import BinaryUfuncInfo, UnaryUfuncInfo

    count = SAMPLES.get(str(dtype).removeprefix("torch."), 2)
    for check in ("forward", "backward"):
        if not op_database.applies(op, dtype, check):
            continue
        torch.manual_seed(0)
        samples = op.sample_inputs("cpu", dtype, requires_grad=check == "backward")
        samples = list(itertools.islice(samples, count))
        if isinstance(op, UnaryUfuncInfo | BinaryUfuncInfo):
            samples += [grown(s) for s in samples if s.input.dim()][:1]
        for sample in samples:
            with contextlib.suppress(Exception):
                call = op_database.Call(op, sample)
                operands = call.place()
                result = call.run(op, operands)
                if check == "backward":
                    if sample.output_process_fn_grad is not None:
                        result = sample.output_process_fn_grad(result)
                    op_database._gradients(result, operands)


def grown(sample):
    """A sample of an elementwise operator with dimensions as long as in use (compiles of a few
    elements are quicker than those of many); broadcast dimensions stay."""
    import torch
    from torch.utils._pytree import tree_leaves, tree_map

    operands = (sample.input, sample.args, sample.kwargs)
    tensors = [t for t in tree_leaves(operands) if isinstance(t, torch.Tensor)]
    rank, numel = max((t.dim(), t.numel()) for t in tensors)
    factor = max(1, int((ELEMENTS / max(1, numel)) ** (1 / rank)))

    def one(t):
        if not isinstance(t, torch.Tensor):
            return t
        wide = t.detach().repeat([factor if s > 1 else 1 for s in t.shape])
        return wide.requires_grad_(t.requires_grad)

    first, args, kwargs = tree_map(one, operands)
    return type(sample)(
        first, args=args, kwargs=kwargs, output_process_fn_grad=sample.output_process_fn_grad
    )


def compile_worker() -> None:
    os.nice(10)
    from torch_tpu.compiler import compile_ahead

    for task, answer in workers.tasks():
        text = pathlib.Path(task["file"]).read_text()
        start, spent = time.monotonic(), time.process_time()
        try:
            out = compile_ahead(text, TOPOLOGIES[task["chip"]], "O1")
            cost = {k: v for k, v in out.get("cost", {}).items() if k in COST}
            result = {"ok": True, "memory": out.get("memory", {}), "cost": cost}
        except Exception as error:  # noqa: BLE001
            result = {"ok": False, "error": str(error)[:2000]}
        # A busy host stretches the clock, several threads the processor's: the smaller is nearer.
        seconds = min(time.monotonic() - start, time.process_time() - spent)
        answer(result | {"seconds": round(seconds, 3)})


# --- The driver.


def collect(args: argparse.Namespace, programs: pathlib.Path) -> None:
    shutil.rmtree(programs, ignore_errors=True)
    sys.path.insert(0, str(ROOT / "tests" / "torch"))
    import op_database
    import torch
    import tpu_check_calls

    todo = [
        {"name": op.full_name, "dtype": dtype}
        for op in op_database.entries(args.entries)
        for dtype in args.dtypes
        if op_database.applies(op, getattr(torch, dtype), "forward")
    ]
    for name, (_, dtypes) in tpu_check_calls.CALLS.items():
        if not args.entries or name in args.entries:
            todo += [{"name": name, "dtype": d} for d in dtypes if d in args.dtypes]
    with tqdm(total=len(todo), desc="collect") as bar:

        def finish(task: dict, result: dict | None, why: str) -> None:
            bar.update()
            if result is None:
                bar.write(f"{task['name']} {task['dtype']}: {why}")

        command = [sys.executable, __file__, "--worker", "collect"]
        for task in todo:
            task["dump"] = str(programs)
        workers.run(todo, command, finish, jobs=args.jobs, seconds=600, env=COLLECT_ENV)
    (programs / "complete").touch()


def size_of(label: str) -> int:
    """Elements of all tensors that a label names."""
    total = 0
    for sizes in re.findall(r"\[([0-9, ]*)\]", label):
        n = 1
        for s in filter(None, sizes.replace(" ", "").split(",")):
            n *= int(s)
        total += n
    return total


def select(programs: pathlib.Path, row_of: dict[str, str]) -> list[dict]:
    """For each row and dtype the program of the most elements; of equals, the longest."""
    best: dict = {}
    for file in programs.glob("*/*.mlir"):
        label, _, text = file.read_text().partition("\n")
        label = label.removeprefix("// ")
        row = row_of.get(label.split(" on ")[0])
        if row is None:
            continue  # a graph, or a copy that the front end makes
        rank = (size_of(label), len(text), label)
        if best.get((row, file.parent.name), ((),))[0] < rank:
            best[row, file.parent.name] = (rank, label, file, text)
    return [
        {"row": row, "dtype": dtype, "call": label, "file": str(file),
         "hash": hashlib.sha256(text.encode()).hexdigest()[:16]}
        for (row, dtype), (_, label, file, text) in sorted(best.items())
    ]  # fmt: skip


def read(path: pathlib.Path) -> dict[tuple[str, str], dict]:
    lines = path.read_text().splitlines() if path.exists() else []
    return {(r["hash"], r["chip"]): r for r in map(json.loads, lines)}


def compile_all(args: argparse.Namespace, chosen: list[dict], results: pathlib.Path) -> None:
    done = read(results)
    wanted = {}
    for chip in args.chips:
        for program in chosen:
            key = (program["hash"], chip)
            if key not in done or (args.retry and not done[key]["ok"]):
                wanted[key] = {**program, "chip": chip}
    counts = collections.Counter()
    with results.open("a") as log, tqdm(total=len(wanted), desc="compile", smoothing=0.02) as bar:

        def finish(task: dict, result: dict | None, why: str) -> None:
            result = result or {"ok": False, "error": why, "seconds": HANG}
            print(json.dumps({**task, **result}), file=log, flush=True)
            counts["ok" if result["ok"] else "failed"] += 1
            counts["slow"] += result["seconds"] > SLOW
            bar.update()
            bar.set_postfix(counts, refresh=False)

        command = [sys.executable, __file__, "--worker", "compile"]
        todo = sorted(wanted.values(), key=lambda p: args.dtypes.index(p["dtype"]))
        workers.run(todo, command, finish, jobs=args.jobs, seconds=HANG,
                    lifetime=300)  # fmt: skip


# --- The report.


def by_chip(args: argparse.Namespace, chosen: list[dict], results: dict) -> dict[str, list[dict]]:
    """The results of the chosen programs, for each chip."""
    return {
        chip: [results[p["hash"], chip] | p for p in chosen if (p["hash"], chip) in results]
        for chip in args.chips
    }


def by_row(results: list[dict]) -> dict[str, list[dict]]:
    rows = collections.defaultdict(list)
    for r in results:
        rows[r["row"]].append(r)
    return rows


def troubles(results: list[dict]) -> list[dict]:
    """What doesn't compile, then what takes too long."""
    bad = [r for r in results if not r["ok"] or r["seconds"] > SLOW]
    return sorted(bad, key=lambda r: (r["ok"], -r["seconds"], r["row"], r["dtype"]))


COLUMNS = ("chip", "programs", "compile", "rows", "whole rows", "median s", "slowest s",
           "over 10 s")  # fmt: skip


def summary(chips: dict[str, list[dict]]) -> list[list[str]]:
    table = []
    for chip, results in chips.items():
        rows = by_row(results)
        seconds = sorted(r["seconds"] for r in results) or [0.0]
        whole = sum(all(r["ok"] for r in members) for members in rows.values())
        good = sum(r["ok"] for r in results)
        table.append([
            chip, len(results), f"{100 * good / max(1, len(results)):.2f} %", len(rows),
            f"{100 * whole / max(1, len(rows)):.2f} %", f"{seconds[len(seconds) // 2]:.2f}",
            f"{seconds[-1]:.1f}", sum(s > SLOW for s in seconds),
        ])  # fmt: skip
    return [[str(cell) for cell in row] for row in table]


def report(chips: dict[str, list[dict]], missing: list[str] | None) -> None:
    for row in [list(COLUMNS), *summary(chips)]:
        print("  ".join(f"{cell:>10}" for cell in row))
    for chip, results in chips.items():
        for r in troubles(results):
            error = " ".join(r.get("error", "").split())[:200]
            print(f"{chip:6} {r['seconds']:6.1f} s  {r['dtype']:10} {r['call'][:90]}  {error}")
    if missing is not None:
        print(f"{len(missing)} rows without a program: {', '.join(missing)}")


def write_docs(chips: dict[str, list[dict]], missing: list[str]) -> None:
    """docs/tpu_check.json, which tools/ops_page.py reads, and the page beside it."""
    from importlib.metadata import version

    table: dict = collections.defaultdict(dict)
    for chip, results in chips.items():
        for row, members in by_row(results).items():
            table[row][chip] = {
                "dtypes": ",".join(m["dtype"] for m in members),
                "seconds": round(max(m["seconds"] for m in members), 1),
                "temporaries": max(m.get("memory", {}).get("temporaries", 0) for m in members),
                "failed": ",".join(m["dtype"] for m in members if not m["ok"]),
            }
    lines = ",\n".join(f"  {json.dumps(row)}: {json.dumps(table[row])}" for row in sorted(table))
    (ROOT / "docs" / "tpu_check.json").write_text("{\n" + lines + "\n}\n")
    page = [
        "# Compiled for TPUs that aren't there",
        "",
        "Made by `make tpu-check` (`tools/tpu_check.py`), which needs `pip install libtpu==0.0.51`",
        "and no TPU: PyTorch's operator database and some calls of our own run on the CPU plugin",
        "with a TPU's capabilities; of each row of the table of operators and each of",
        f"{', '.join(DTYPES)} the largest program is compiled by libtpu {version('libtpu')} at the",
        "effort of eager mode. Seconds are of the compiler's processor time. That a program",
        "compiles says nothing of its numbers: those are checked on the CPU plugin.",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|---|" + "---:|" * (len(COLUMNS) - 1),
        *("| " + " | ".join(row) + " |" for row in summary(chips)),
        "",
        "docs/ops.md gives the seconds of each row's slowest program.",
        "",
        "## What doesn't compile, or takes more than 10 s",
        "",
    ]
    bad = [(chip, r) for chip, results in chips.items() for r in troubles(results)]
    if bad:
        page += ["| chip | call | s | why |", "|---|---|---:|---|"]
        for chip, r in bad:
            why = " ".join(r.get("error", "").split()).replace("|", "\\|")[:160]
            page.append(f"| {chip} | `{r['call'][:100]}` | {r['seconds']:.1f} | {why} |")
    else:
        page.append("Nothing.")
    page += ["", "## Rows without a program", ""]
    page.append(", ".join(f"`{m}`" for m in missing) + "." if missing else "None.")
    (ROOT / "docs" / "tpu_check.md").write_text("\n".join(page) + "\n")


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        return collect_worker() if sys.argv[2] == "collect" else compile_worker()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    words = lambda text: text.split(",")  # noqa: E731
    parser.add_argument("entries", nargs="*", help="entries of op_db by name (all)")
    parser.add_argument("--chips", type=words, default=list(TOPOLOGIES), help=",".join(TOPOLOGIES))
    parser.add_argument("--dtypes", type=words, default=list(DTYPES), help="as float32,int8")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "out" / "tpu_check")
    parser.add_argument("--collect", action="store_true", help="collect anew")
    parser.add_argument("--retry", action="store_true", help="compile again what failed")
    parser.add_argument("--report", action="store_true", help="write the report only")
    parser.add_argument("--docs", action="store_true", help="write docs/tpu_check.*")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    programs, results = args.out / "programs", args.out / "results.jsonl"
    if args.collect or not (programs / "complete").exists():
        collect(args, programs)
    import torch_tpu

    rows = torch_tpu.ops()
    row_of = {name: row["name"] for row in rows for name in [row["name"], *row["overloads"]]}
    chosen = select(programs, row_of)
    if not args.report:
        compile_all(args, chosen, results)
    chips = by_chip(args, chosen, read(results))
    found = {p["row"] for p in chosen}
    missing = [r["name"] for r in rows if r["name"] not in found and r["status"] in MUST]
    report(chips, None if args.entries else missing)
    if args.docs:
        write_docs(chips, missing)


if __name__ == "__main__":
    main()
