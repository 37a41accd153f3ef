"""Histograms, reductions by segment, hashes, bits of numbers against the CPU."""

import math

import pytest
import torch
from oracle import check, check_raises

pytestmark = pytest.mark.usefixtures("no_fallback")


def draw(*shape, dtype=torch.float32, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)


def test_histogram():
    x, w = draw(40, dtype=torch.float64), draw(40, dtype=torch.float64, seed=1).abs()
    edges = torch.tensor([-1.0, -0.5, 0.5, 2.0], dtype=torch.float64)
    for density in (False, True):
        check(lambda x, d=density: tuple(torch.histogram(x, 7, density=d)), x)
        check(
            lambda x, w, d=density: tuple(
                torch.histogram(x, 5, range=(-1.0, 1.5), weight=w, density=d)
            ),
            x,
            w,
        )
        check(lambda x, e, d=density: tuple(torch.histogram(x, e, density=d)), x, edges)
    check(
        lambda x, e: tuple(torch.histogram(x, e)),
        torch.cat([edges, torch.tensor([math.nan])]),
        edges,
    )
    check(lambda x: tuple(torch.histogram(x, 3)), torch.ones(4))
    check(lambda x: tuple(torch.histogram(x, 3)), torch.zeros(0))
    check_raises(lambda x: torch.histogram(x, 0), x)
    check_raises(lambda x: torch.histogram(x, 3, range=(2.0, 1.0)), x)
    check_raises(lambda x: torch.histogram(x, 3), torch.arange(3))


def test_histogram_of_points():
    x, w = draw(30, 2), draw(30, seed=1).abs()
    for density in (False, True):
        check(lambda x, d=density: tuple(torch.histogramdd(x, [3, 4], density=d)), x)
        check(
            lambda x, w, d=density: tuple(
                torch.histogramdd(x, [2, 3], range=[-1.0, 1.0, 0.0, 2.0], weight=w, density=d)
            ),
            x,
            w,
        )
    check(
        lambda x, a, b: torch.histogramdd(x, (a, b)).hist,
        x,
        torch.tensor([-1.0, 0.0, 1.0]),
        torch.tensor([-2.0, 2.0]),
    )
    check_raises(lambda x: torch.histogramdd(x, [3]), x)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_segments(reduce):
    data = draw(6, 2, dtype=torch.float64)
    data[4, 0] = 0.0
    lengths, offsets = torch.tensor([2, 0, 3, 1]), torch.tensor([0, 2, 2, 5, 6])
    for initial in (None, 0.5):
        check(
            lambda x, n, i=initial: torch.segment_reduce(x, reduce, lengths=n, initial=i),
            data,
            lengths,
            grad=True,
        )
        check(
            lambda x, o, i=initial: torch.segment_reduce(x, reduce, offsets=o, initial=i),
            data,
            offsets,
            grad=True,
        )
    wide = draw(2, 5, 3, dtype=torch.float64)
    check(
        lambda x, n: torch.segment_reduce(x, reduce, lengths=n, axis=1),
        wide,
        torch.tensor([[2, 3], [4, 1]]),
        grad=True,
    )
    holes = data.clone()
    holes[1, 1] = math.nan
    check(lambda x, n: torch.segment_reduce(x, reduce, lengths=n), holes, lengths)


def test_segments_must_fit():
    data = draw(4).to("tpu")
    with pytest.raises(RuntimeError, match="sum to data.size.*lengths.*is 3"):
        torch.segment_reduce(data, "sum", lengths=torch.tensor([1, 2], device="tpu"))
        torch.tpu.synchronize()
    torch.segment_reduce(data, "sum", lengths=torch.tensor([1, 2], device="tpu"), unsafe=True)
    torch.tpu.synchronize()


def test_hashes():
    for x in (draw(3, 4), draw(3, 4, dtype=torch.float64), torch.arange(-6, 6).view(3, 4),
              torch.tensor([[True, False], [True, True]])):  # fmt: skip
        check(torch.hash_tensor, x)
        check(lambda x: torch.hash_tensor(x, 1, keepdim=True), x)


def test_frexp():
    x = torch.tensor([0.0, -0.0, 1.0, -3.5, 0.5, 1e-30, 1e30, math.inf, -math.inf, math.nan])
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        check(lambda x: torch.frexp(x).mantissa, x.to(dtype))
        check(
            lambda x: torch.frexp(x).exponent,
            x[:-3].to(torch.float32).to(dtype).nan_to_num(1, 1, 1),
        )
    check(lambda x: tuple(torch.frexp(x)), draw(3, 4).t(), grad=False)


def test_shift_operators():
    a, b = torch.tensor([1, -8, 100]), torch.tensor([1, 2, 70])
    check(lambda a, b: (a << b, a >> b, a << 2, a >> 1), a, b)

    def in_place(a, b):
        a <<= 1
        a >>= b
        return a

    for dtype in (torch.int64, torch.int8):
        check(in_place, a.to(dtype), b.to(dtype))
