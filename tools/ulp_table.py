"""The largest error of transcendental functions in units in the last place (ulp), on tpu and on
PyTorch's CPU, against float64 on the CPU. Writes docs/ulp.md with --docs.

    python tools/ulp_table.py [--docs docs/ulp.md] [function ...]

One ulp is the distance of the two numbers of the dtype around the exact value. Each function gets
400,000 arguments: spread evenly, and evenly in the exponent, over the range in the table, and over
what is hard for it. Results below the smallest normal number aren't judged: the CPU plugin flushes
them.
"""

import argparse
import math
import pathlib
import sys

import torch

import torch_tpu  # noqa: F401

S = torch.special
# Function, range, and whether small arguments matter (spread in the exponent down to 1e-30).
FUNCTIONS = {
    "exp": (torch.exp, (-87, 88)),
    "exp2": (torch.exp2, (-125, 127)),
    "expm1": (torch.expm1, (-87, 88)),
    "log": (torch.log, (0, 3e38)),
    "log2": (torch.log2, (0, 3e38)),
    "log10": (torch.log10, (0, 3e38)),
    "log1p": (torch.log1p, (-0.999, 3e38)),
    "sqrt": (torch.sqrt, (0, 3e38)),
    "rsqrt": (torch.rsqrt, (0, 3e38)),
    "reciprocal": (torch.reciprocal, (-3e38, 3e38)),
    "sin": (torch.sin, (-1000, 1000)),
    "cos": (torch.cos, (-1000, 1000)),
    "tan": (torch.tan, (-1000, 1000)),
    "asin": (torch.asin, (-1, 1)),
    "acos": (torch.acos, (-1, 1)),
    "atan": (torch.atan, (-3e38, 3e38)),
    "sinh": (torch.sinh, (-88, 88)),
    "cosh": (torch.cosh, (-88, 88)),
    "tanh": (torch.tanh, (-20, 20)),
    "asinh": (torch.asinh, (-3e38, 3e38)),
    "acosh": (torch.acosh, (1, 3e38)),
    "atanh": (torch.atanh, (-1, 1)),
    "sigmoid": (torch.sigmoid, (-87, 87)),
    "logsigmoid": (torch.nn.functional.logsigmoid, (-87, 87)),
    "softplus": (torch.nn.functional.softplus, (-87, 87)),
    "silu": (torch.nn.functional.silu, (-80, 80)),
    "gelu": (torch.nn.functional.gelu, (-5, 20)),
    "mish": (torch.nn.functional.mish, (-80, 80)),
    "erf": (torch.erf, (-6, 6)),
    "erfc": (torch.erfc, (-6, 9)),
    "erfinv": (torch.erfinv, (-1, 1)),
    "lgamma": (torch.lgamma, (0, 1e4)),
    "digamma": (torch.digamma, (0, 1e4)),
    "sinc": (torch.sinc, (-100, 100)),
    "i0": (S.i0, (-80, 80)),
    "i0e": (S.i0e, (-1e4, 1e4)),
    "i1": (S.i1, (-80, 80)),
    "i1e": (S.i1e, (-1e4, 1e4)),
    "ndtr": (S.ndtr, (-12, 8)),
    "log_ndtr": (S.log_ndtr, (-100, 8)),
    "ndtri": (S.ndtri, (0, 1)),
    "entr": (S.entr, (0, 1e4)),
    "pow(x, 2.5)": (lambda x: torch.pow(x, 2.5), (0, 1e15)),
    "pow(1.7, x)": (lambda x: torch.pow(1.7, x), (-160, 160)),
    "atan2(x, 0.7)": (lambda x: torch.atan2(x, torch.full_like(x, 0.7)), (-3e38, 3e38)),
    "hypot(x, 3)": (lambda x: torch.hypot(x, torch.full_like(x, 3.0)), (-1e18, 1e18)),
    "logaddexp(x, 1)": (lambda x: torch.logaddexp(x, torch.full_like(x, 1.0)), (-80, 80)),
}
DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def arguments(low: float, high: float, dtype: torch.dtype) -> torch.Tensor:
    g = torch.Generator().manual_seed(0)
    info = torch.finfo(dtype)
    low, high = max(low, -info.max), min(high, info.max)
    even = torch.rand(200_000, dtype=torch.float64, generator=g) * (high - low) + low
    smallest = math.log2(info.tiny) + 4
    parts = [even]
    for sign, end in ((1, high), (-1, -low)):
        if end > 0:
            top = math.log2(end)
            e = torch.rand(100_000, dtype=torch.float64, generator=g) * (top - smallest) + smallest
            parts.append(sign * torch.exp2(e))
    x = torch.cat(parts)
    x = x[(x >= low) & (x <= high)]
    return x.to(dtype)


def largest_error(got: torch.Tensor, exact: torch.Tensor, dtype: torch.dtype) -> float:
    """In ulp of `dtype`; infinite where one is finite and the other isn't."""
    info = torch.finfo(dtype)
    rounded = exact.to(dtype)
    judged = torch.isfinite(rounded) & (exact.abs() >= info.tiny * 4)
    got, exact = got[judged].double(), exact[judged]
    if not torch.isfinite(got).all():
        return math.inf
    exponent = torch.floor(torch.log2(exact.abs()))
    ulp = torch.exp2(exponent) * info.eps
    return ((got - exact).abs() / ulp).max().item()


def measure(name: str) -> list[tuple[float, float]]:
    fn, (low, high) = FUNCTIONS[name]
    out = []
    for dtype in DTYPES:
        x = arguments(low, high, dtype)
        exact = fn(x.double())
        tpu = largest_error(fn(x.to("tpu")).cpu(), exact, dtype)
        try:
            cpu = largest_error(fn(x), exact, dtype)
        except NotImplementedError:  # the CPU lacks the dtype
            cpu = math.nan
        out.append((tpu, cpu))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("functions", nargs="*", help="(all)")
    parser.add_argument("--docs", type=pathlib.Path, help="write this Markdown page")
    args = parser.parse_args()
    names = [str(d).split(".")[1] for d in DTYPES]
    head = "| function | range | " + " | ".join(f"{d} tpu | {d} CPU" for d in names) + " |"
    lines = [head, "|---|---|" + "---:|" * (2 * len(DTYPES))]
    worse = []
    for name in args.functions or FUNCTIONS:
        errors = measure(name)
        low, high = FUNCTIONS[name][1]
        cells = ["–" if e != e else f"{e:.3g}" for pair in errors for e in pair]
        lines.append(f"| `{name}` | {low:g} to {high:g} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
        tpu, cpu = errors[0]
        if not tpu <= max(4, 2 * cpu):
            worse.append(name)
    verdict = f"Outside the promise: {', '.join(worse)}." if worse else "All keep the promise."
    if args.docs:
        text = [
            "# Accuracy of transcendental functions",
            "",
            "Made by `python tools/ulp_table.py --docs docs/ulp.md`: the largest error in units in",
            "the last place against float64, on `tpu` (CPU plugin) and on PyTorch's CPU, over",
            "400,000 arguments each. The promise in float32: at most 4 ulp, or twice PyTorch's own",
            "error.",
            verdict,
            "",
            *lines,
        ]
        args.docs.write_text("\n".join(text) + "\n")
    print(verdict)
    sys.exit(bool(worse))


if __name__ == "__main__":
    main()
