"""The command `torch-tpu`: what is installed, what the operators are."""

import argparse
import json
import sys
from collections import Counter


def _info(args: argparse.Namespace) -> int:
    """Starts the runtime, so that the plugin can be named; a failure is part of the answer."""
    import torch

    import torch_tpu

    problem = None
    try:
        torch.tpu.synchronize()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what the user asks about
        problem = str(error)
    info = torch_tpu.info() | ({"problem": problem} if problem else {})
    if args.json:
        print(json.dumps(info, indent=2, default=str))
        return 0 if problem is None else 1
    flags = info.pop("flags", [])
    for name, value in info.items():
        if isinstance(value, dict):
            value = ", ".join(f"{k}: {v}" for k, v in value.items())
        print(f"{name:18} {value}")
    print("\nflags")
    for f in flags:
        print(f"  {f['variable']:32} {f['value'] or '-':12} {f['doc']}")
    return 0 if problem is None else 1


def _ops(args: argparse.Namespace) -> int:
    import torch_tpu

    rows = [r for r in torch_tpu.ops() if args.pattern in r["name"]]
    if args.json:
        print(json.dumps(rows, indent=2))
        return 0
    for r in rows:
        print(f"{r['name']:52} {r['status']:8} {r['kind']:12} {r['note']}".rstrip())
    counts = Counter(r["status"] for r in rows)
    print(f"{len(rows)} rows: " + ", ".join(f"{n} {status}" for status, n in counts.items()))
    return 0 if rows else 1


def main(argv: list[str] | None = None) -> int:
    """Runs the command line; the exit status."""
    parser = argparse.ArgumentParser(prog="torch-tpu", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    info = commands.add_parser("info", help="versions, plugin, devices, flags")
    info.set_defaults(run=_info)
    ops = commands.add_parser("ops", help="the table of operators")
    ops.add_argument("pattern", nargs="?", default="", help="part of a name, as in aten::add")
    ops.set_defaults(run=_ops)
    for command in (info, ops):
        command.add_argument("--json", action="store_true", help="as JSON")
    args = parser.parse_args(argv)
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
