"""Sorting, order statistics, searches, and operators whose results' sizes depend on values."""

import math

import pytest
import torch
from oracle import check, check_raises, layouts

pytestmark = pytest.mark.usefixtures("no_fallback")

NAN, INF = math.nan, math.inf


def real(*shape: int, dtype=torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1)).to(dtype)


def whole(*shape: int, dtype=torch.int64) -> torch.Tensor:
    return torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(2)).to(dtype)


def test_sort():
    for x in layouts(real(4, 6)).values():
        check(lambda t: (t.sort(1), t.sort(0, descending=True), t.argsort(1)), x)
    check(lambda t: t.sort(dim=1, stable=True), whole(3, 20))
    check(lambda t: t.sort(dim=1, descending=True, stable=True), whole(3, 20, dtype=torch.int8))
    check(lambda t: t.sort(dim=0, stable=True), whole(9).bool())
    check(
        lambda t: (t.sort(dim=0, stable=True), t.sort(dim=0, descending=True, stable=True)),
        torch.tensor([1.0, NAN, -INF, INF, -0.0, 0.0, NAN]),
    )
    check(lambda t: t.sort(1), torch.zeros(2, 0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int64])
def test_topk(dtype):
    x = torch.randperm(30, generator=torch.Generator().manual_seed(3)).reshape(3, 10).to(dtype)
    check(lambda t: (t.topk(4), t.topk(2, 0), t.topk(3, largest=False)), x)


def test_topk_nan():
    x = torch.tensor([1.0, NAN, -INF, INF, 3.0])
    check(lambda t: (t.topk(3), t.topk(5, largest=False)), x)
    check_raises(lambda t: t.topk(9), x)


def test_order_statistics():
    x = torch.randperm(28, generator=torch.Generator().manual_seed(4)).reshape(4, 7).float()
    check(lambda t: (t.median(), t.median(1), t.median(0, keepdim=True), t.kthvalue(3, 1)), x)
    y = x.clone()
    y[1, 2] = y[1, 3] = y[3, 0] = NAN
    check(lambda t: (t.median(1), t.nanmedian(1), t.nanmedian(), t.median(), t.kthvalue(7, 1)), y)
    check(lambda t: t.mode(1)[0], whole(5, 11))
    check_raises(lambda t: t.kthvalue(9, 1), x)


def test_searches():
    edges = torch.tensor([1.0, 3.0, 3.0, 7.0])
    x = torch.tensor([[0.0, 1.0, 3.0], [NAN, 8.0, 7.0]])
    for right in (False, True):
        check(lambda t, v, right=right: torch.searchsorted(t, v, right=right), edges, x)
        check(
            lambda v, t, right=right: torch.bucketize(v, t, right=right, out_int32=True), x, edges
        )
    check(lambda t, v: torch.searchsorted(t, v), real(2, 5).sort(1)[0], real(2, 3))
    check(lambda t: torch.searchsorted(t, 3), edges)
    check(
        lambda t, v, s: torch.searchsorted(t, v, sorter=s),
        torch.tensor([3.0, 1.0, 2.0]),
        torch.tensor([1.5, 2.5]),
        torch.tensor([1, 2, 0]),
    )


def test_isin():
    x = whole(3, 5)
    check(lambda t, s: (torch.isin(t, s), torch.isin(t, s, invert=True)), x, torch.tensor([1, -2]))
    check(lambda t, s: torch.isin(t, s), x, torch.arange(0, 200, 2))
    check(lambda t: (torch.isin(t, 2), torch.isin(1, t)), x)


def test_sizes_from_values():
    x = whole(4, 5)
    check(lambda t: (t.nonzero(), torch.nonzero(t > 9)), x)
    check(lambda t: torch.masked_select(t, t > 0), x)
    check(lambda t: torch.unique(t, return_inverse=True, return_counts=True), x)
    check(lambda t: torch.unique(t, dim=0), x)
    check(lambda t: torch.unique_consecutive(t, return_counts=True), x)
    check(lambda t: torch.bincount(t, minlength=9), torch.tensor([1, 4, 4, 0]))
    check(lambda t, r: torch.repeat_interleave(t, r), torch.arange(3), torch.tensor([2, 0, 3]))
    check(lambda t: torch.nonzero_static(t, size=30, fill_value=-7), x, strides=False)
    check(lambda t: torch.nonzero_static(t, size=3), x, strides=False)
    y = whole(91, 100)
    check(lambda t: torch.nonzero_static(t, size=9100), y, strides=False)
    check(lambda t: torch.nonzero_static(t, size=5), y, strides=False)
    check_raises(lambda t: torch.bincount(t), torch.tensor([-1, 2]))


def test_masked_scatter():
    x, mask = real(3, 4), real(3, 4) > 0
    check(lambda t, m, s: t.masked_scatter(m, s), x, mask, torch.arange(20.0), grad=True)
    check(lambda t, m, s: t.masked_scatter_(m, s), x, mask[:, :1], torch.arange(20.0))
    check(lambda t, m: torch.masked_select(t, m), x, mask, grad=True)
    with pytest.raises((IndexError, RuntimeError)):
        x.to("tpu").masked_scatter(mask.to("tpu"), torch.ones(1, device="tpu"))
        torch.tpu.synchronize()


def test_histc():
    x = real(200)
    check(lambda t: (torch.histc(t, 10), torch.histc(t, 4, -1, 1)), x)
    check_raises(lambda t: torch.histc(t, 4, 2, 1), x)


def test_rows_of_no_elements_and_no_rows():
    fns = (
        torch.mode,
        lambda t, dim: torch.kthvalue(t, 1, dim),
        torch.median,
        torch.nanmedian,
    )
    for fn in fns:
        for shape, dim in (((0, 3), 1), ((3, 0), 0), ((0, 3), -1)):
            check(lambda t, fn=fn, dim=dim: tuple(fn(t, dim)), torch.zeros(shape))
        for shape, dim in (((0, 3), 0), ((3, 0), 1)):
            # Of kthvalue PyTorch's meta kernel says that k is out of range.
            with pytest.raises((IndexError, RuntimeError), match="non-zero size|out of range"):
                fn(torch.zeros(shape, device="tpu"), dim)
