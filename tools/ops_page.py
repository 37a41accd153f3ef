"""Writes docs/ops.md from the table of operators: `make docs`.

python tools/ops_page.py FILE
"""

import json
import sys
from collections import defaultdict
from pathlib import Path

import torch_tpu

HEAD = """# Operators

Made by `make docs` from the table that every executor reads (`torch_tpu.ops()`); do not edit. A row
is one operator of PyTorch's schema; its in-place, `out=` and foreach forms are served by the same
row. What PyTorch composes of these ("composite" operators: `linear`, `einsum`, ...) needs no row.

| status | meaning |
|---|---|
| done | every input that PyTorch's CPU takes |
| partial | works but for what the note says |
| host | computed on the CPU by design; the note says why |
| refused | raises; the note says why |

v5e, v6e, tpu7x: the row's programs compile for these chips, the slowest in so many seconds, or not
for the dtypes named ([how](tpu_check.md)).

An operator that is not in the table runs on the CPU, with one warning naming it
(`TORCH_TPU_FALLBACK=error` makes that an error).

"""


CHIPS = ("v5e", "v6e", "tpu7x")
CHECKED = Path(__file__).resolve().parent.parent / "docs" / "tpu_check.json"


def compiled(result: dict | None) -> str:
    """The cell of a row and a chip."""
    if result is None:
        return ""
    return f"not {result['failed']}" if result["failed"] else f"{result['seconds']:.1f}"


def page() -> str:
    """The whole page as Markdown."""
    rows = torch_tpu.ops()
    kinds = defaultdict(list)
    for row in rows:
        kinds[row["kind"]].append(row)
    checked = json.loads(CHECKED.read_text()) if CHECKED.exists() else {}
    statuses = defaultdict(int)
    for row in rows:
        statuses[row["status"]] += 1
    overloads = sum(len(row["overloads"]) for row in rows)
    counts = ", ".join(f"{n} {s}" for s, n in sorted(statuses.items()))
    out = [HEAD, f"{len(rows)} rows ({counts}) serve {overloads} overloads.\n"]
    for kind in sorted(kinds):
        out.append(
            f"\n## {kind}\n\n| operator | status | overloads | {' | '.join(CHIPS)} | note |\n"
            "|---|---|---|---|---|---|---|\n"
        )
        for row in sorted(kinds[kind], key=lambda r: r["name"]):
            note = row["note"].replace("|", "\\|")
            chips = [compiled(checked.get(row["name"], {}).get(chip)) for chip in CHIPS]
            cells = (f"`{row['name']}`", row["status"], str(len(row["overloads"])), *chips, note)
            out.append("| " + " | ".join(cells).rstrip() + " |\n")
    return "".join(out)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page())
