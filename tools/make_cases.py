"""Writes tests/cases/*.case: calls of operators with the values that PyTorch's CPU gives.

    python tools/make_cases.py [FAMILY...]

The calls are in tools/cases/, one function a family. Nothing of torch_tpu is used: where PyTorch's
CPU has no kernel, or draws from another generator, a call brings its own golden function.
"""

import importlib
import pkgutil
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import cases  # noqa: E402
import torch  # noqa: E402
from cases.recorder import Family  # noqa: E402

HEAD = "Made by tools/make_cases.py with PyTorch {version}. Change tools/cases/ instead."


def families() -> dict:
    """Every function FAMILY(c) of the modules in tools/cases that has a case to tell."""
    found = {}
    for module in pkgutil.iter_modules(cases.__path__):
        for name, make in vars(importlib.import_module(f"cases.{module.name}")).items():
            if callable(make) and getattr(make, "is_family", False):
                found[name] = make
    return found


def wrap(statement: str) -> str:
    if statement.startswith("op ") or len(statement) <= 100:
        return statement
    return "\n".join(
        textwrap.wrap(
            statement, 100, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
        )
    )


def main() -> None:
    torch.set_num_threads(1)
    wanted = sys.argv[1:]
    total = 0
    for name, make in sorted(families().items()):
        if wanted and name not in wanted:
            continue
        family = Family()
        make(family)
        head = "# " + HEAD.format(version=torch.__version__.split("+")[0])
        text = "\n".join([head, *map(wrap, family.statements)]) + "\n"
        (ROOT / "tests" / "cases" / f"{name}.case").write_text(text)
        total += family.count
        print(f"{name:16} {family.count:4} cases {len(text):7} bytes")
    print(f"{total} cases")


if __name__ == "__main__":
    main()
