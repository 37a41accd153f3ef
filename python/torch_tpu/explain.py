"""Why programs were compiled: which call, on which line, and how it differs from earlier ones."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from torch_tpu import _C


class Explanation(list):
    """What `explain_compiles()` gives: a list of dictionaries that prints as a table."""

    def __str__(self) -> str:
        if not self:
            return "no program was asked for"
        compiled = [r for r in self if r["source"] == "compiled"]
        seconds = sum(r["seconds"] for r in compiled)
        lines = [
            f"{len(self)} new calls: {len(compiled)} compiled in {seconds:.2f} s, "
            f"{sum(r['source'] == 'disk' for r in self)} from disk, "
            f"{sum(r['source'] == 'shared' for r in self)} share another's program"
        ]
        for r in self:
            how = r["source"]
            if how == "compiled":
                how = f"{r['seconds'] * 1e3:.0f} ms" if r["seconds"] else "compiling"
            where = f" at {r['location']}" if r["location"] else ""
            operands = f"({r['operands']})" if r["operands"] else ""
            lines.append(f"{how:>9}  {r['op']}{operands}{where}\n           {r['cause']}")
        return "\n".join(lines)

    __repr__ = __str__


def explain_compiles(clear: bool = False) -> Explanation:
    """Every program that was asked for, oldest first (the last ten thousand).

    Each entry has: `op` (an operator, or a recorded piece of several calls), `operands` (dtypes and
    shapes), `location` (the user's file and line), `cause` (new operator, shape, dtype, constant,
    layout or order of calls, and the nearest key there was), `source` ("compiled", "disk", or
    "shared" with a call whose program is the same), and `seconds` in the compiler (0 while it is
    there).

    Args:
        clear: forget them afterwards.
    """
    records = Explanation(_C.program_records())
    if clear:
        _C.clear_program_records()
    return records


@contextmanager
def forbid_compiles() -> Iterator[None]:
    """In the block, in all threads, a call whose program would have to be compiled raises
    RuntimeError, naming the call, its line, and how it differs from the nearest known one. Programs
    on disk may be loaded. For serving, after warm-up."""
    _C.forbid_compiles(1)
    try:
        yield
    finally:
        _C.forbid_compiles(-1)


def hlo(fn: Callable[..., Any], *args: torch.Tensor) -> str:
    """The StableHLO text of `fn(*args)` as one program. Nothing of `fn` runs.

    Args:
        fn: a function of tensors on "tpu" whose calls don't depend on values.
        args: its arguments.
    """
    from torch_tpu.compiler import CompiledGraph

    def flat(*inputs: torch.Tensor) -> list[torch.Tensor]:
        leaves = torch.utils._pytree.tree_leaves(fn(*inputs))
        return [t for t in leaves if isinstance(t, torch.Tensor)]

    return CompiledGraph(flat).lower(*args)
