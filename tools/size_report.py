"""Lines of code by part, and what is over the project's limits (600 lines a file, 60 a function).

python tools/size_report.py [--check]
"""

import argparse
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

MAX_FILE, MAX_FUNCTION = 600, 60
SOURCES = {".cc", ".h", ".py"}
ROOT = Path(__file__).resolve().parent.parent


def tracked() -> list[Path]:
    names = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    return [Path(n) for n in names if Path(n).suffix in SOURCES and (ROOT / n).exists()]


def long_functions(path: Path, lines: list[str]) -> list[tuple[int, int]]:
    """(first line, length) of the bodies at top level that are too long."""
    found, start = [], None
    if path.suffix == ".py":
        starts = [
            (i, len(x) - len(x.lstrip()))
            for i, x in enumerate(lines)
            if re.match(r"\s*(async )?def ", x)
        ]
        for first, indent in starts:
            end = first + 1
            while end < len(lines) and (
                not lines[end].strip()
                or len(lines[end]) - len(lines[end].lstrip()) > indent
                or lines[end].lstrip().startswith(")")
            ):
                end += 1
            while not lines[end - 1].strip():
                end -= 1
            if end - first > MAX_FUNCTION:
                found.append((first + 1, end - first))
        return found
    for i, line in enumerate(lines):
        # A body at column 0 that is no type, namespace or table.
        if line and not line[0].isspace() and line.rstrip().endswith("{"):
            head = line.split("{")[0]
            skip = re.match(r"(namespace|struct|class|enum|extern|union)\b", head) or "=" in head
            start = None if skip else i
        elif line.startswith("}") and start is not None:
            if i - start + 1 > MAX_FUNCTION:
                found.append((start + 1, i - start + 1))
            start = None
    return found


def part(path: Path) -> str:
    kind = "tests" if path.stem.endswith("_test") or path.parts[0] == "tests" else ""
    name = "/".join(path.parts[:2]) if path.parts[0] in ("src", "tests") else path.parts[0]
    return f"{name} (tests)" if kind and path.parts[0] != "tests" else name


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail where a file is over its limit")
    args = parser.parse_args()
    sizes: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    large = []
    for path in tracked():
        lines = (ROOT / path).read_text().splitlines()
        sizes[part(path)][0] += 1
        sizes[part(path)][1] += len(lines)
        if len(lines) > MAX_FILE:
            large.append(f"{path}: {len(lines)} lines")
        for first, length in long_functions(path, lines):
            print(f"long function: {path}:{first}: {length} lines")
    print(f"\n{'part':28}{'files':>7}{'lines':>9}")
    for name, (files, count) in sorted(sizes.items()):
        print(f"{name:28}{files:7}{count:9}")
    total = [sum(s[i] for s in sizes.values()) for i in (0, 1)]
    print(f"{'all':28}{total[0]:7}{total[1]:9}")
    for line in large:
        print(f"over {MAX_FILE} lines: {line}")
    return 1 if args.check and large else 0


if __name__ == "__main__":
    sys.exit(main())
