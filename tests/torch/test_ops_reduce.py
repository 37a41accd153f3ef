"""Reductions, extrema, softmax and running reductions against the CPU."""

import math

import pytest
import torch
from oracle import check, check_raises, expanded, layouts

pytestmark = pytest.mark.usefixtures("no_fallback")

NAN, INF = math.nan, math.inf


def real(*shape: int, dtype=torch.float32) -> torch.Tensor:
    g = torch.Generator().manual_seed(1)
    return torch.randn(*shape, generator=g).to(dtype)


def whole(*shape: int, dtype=torch.int64) -> torch.Tensor:
    g = torch.Generator().manual_seed(2)
    return torch.randint(0, 5, shape, generator=g).to(dtype)


SPECIAL = torch.tensor([[1.0, NAN, -INF, 2.0], [-0.0, 0.0, INF, INF], [NAN, NAN, 3.0, -1.0]])

SUMS = {
    "sum": lambda x: x.sum(),
    "sum_dim": lambda x: x.sum(1),
    "sum_keep": lambda x: x.sum((0, -1), keepdim=True),
    "mean": lambda x: x.mean(0),
    "prod": lambda x: x.prod(1),
    "logsumexp": lambda x: x.logsumexp((0, 2)),
    "var": lambda x: x.var(1),
    "std_mean": lambda x: torch.std_mean(x, (0, 1), correction=0),
    "norm1": lambda x: x.norm(1, 2),
    "norm2": lambda x: torch.linalg.vector_norm(x),
    "norm3": lambda x: torch.linalg.vector_norm(x, 3, (1,), True),
    "norm_inf": lambda x: torch.linalg.vector_norm(x, INF, (0, 2)),
    "amax": lambda x: x.amax((0, 2)),
    "amin": lambda x: x.amin(),
    "aminmax": lambda x: x.aminmax(dim=1),
    "_aminmax": lambda x: torch._aminmax(x, 1),
}


@pytest.mark.parametrize("name", SUMS)
def test_float_reductions(name):
    check(SUMS[name], real(3, 4, 5), grad=name not in ("aminmax", "_aminmax"))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("name", ["sum_dim", "mean", "std_mean", "norm2", "amax"])
def test_other_float_types(name, dtype):
    check(SUMS[name], real(3, 4, 5, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int32, torch.int64])
def test_integer_reductions(dtype):
    x = whole(3, 4, dtype=dtype)
    for fn in (
        lambda t: t.sum(),
        lambda t: t.sum(1),
        lambda t: t.prod(0),
        lambda t: t.amax(0),
        lambda t: t.any(1),
        lambda t: t.all(),
        lambda t: torch.count_nonzero(t, 0),
        lambda t: t.max(1),
    ):
        check(fn, x)


def test_layouts():
    for x in layouts(real(3, 4, 5)).values():
        check(lambda t: (t.sum(1), t.amax(2)), x)
    check(lambda t: t.sum((0, 1)), expanded(real(4)))


def test_nan_and_infinity():
    for fn in (
        lambda t: t.amax(1),
        lambda t: t.amin(1),
        lambda t: t.max(1),
        lambda t: t.min(0),
        lambda t: t.argmax(1),
        lambda t: t.argmin(0),
        lambda t: t.max(),
        lambda t: t.nansum(1),
        lambda t: t.logsumexp(1),
        lambda t: t.softmax(0),
    ):
        check(fn, SPECIAL)


def test_nan_survives_a_long_maximum():
    x = torch.zeros(5000)
    x[1234] = NAN
    check(lambda t: (t.max(), t.amin()), x)


def test_first_of_equal_wins():
    x = torch.tensor([[1, 3, 3, 0], [2, 2, 2, 2]])
    check(lambda t: (t.argmax(1), t.argmin(1), t.max(1), t.min(1)), x)
    check(lambda t: (t.argmax(), t.argmax(keepdim=True)), x)


def test_empty():
    x = torch.zeros(0, 3)
    check(lambda t: (t.sum(), t.sum(0), t.prod(0), t.mean(0), t.any(0), t.all(0)), x)
    check(lambda t: (t.amax(1), t.logsumexp(0), t.std(0)), x)
    with pytest.raises((IndexError, RuntimeError)):
        x.to("tpu").amax(0)
    check_raises(lambda t: t.max(0), x)
    check_raises(lambda t: t.max(), x)
    check_raises(lambda t: t.argmax(0), x)


def test_zero_dimensional():
    x = torch.tensor(2.5)
    check(lambda t: (t.sum(0), t.mean(), t.max(0), t.argmax(), t.cumsum(0), t.sort(0)), x)
    check(lambda t: t.softmax(0), x, grad=True)


def test_accumulation_types():
    # 1 + 2^-9 is not a bfloat16: a sum of many must not be rounded on the way.
    x = torch.full((4096,), 0.0078125, dtype=torch.bfloat16)
    assert x.to("tpu").sum().item() == 32.0
    out = torch.empty((), device="tpu")
    torch.sum(torch.full((1000,), 1.00390625, dtype=torch.float16).to("tpu"), dim=0, out=out)
    assert out.item() == pytest.approx(1003.90625)
    assert torch.full((300,), 255, dtype=torch.uint8, device="tpu").sum().item() == 76500
    check(lambda t: t.sum(dtype=torch.float64), real(100))
    check(lambda t: t.sum(dtype=torch.int32), whole(10))


def test_out_forms():
    check(lambda t, o: torch.sum(t, 1, out=o), real(3, 4), torch.empty(0))
    check(
        lambda t, v, i: torch.max(t, 1, out=(v, i)),
        real(3, 4),
        torch.empty(3),
        torch.empty(3, dtype=torch.long),
    )
    check(lambda t, o: torch.mean(t, 0, out=o), real(3, 4), torch.zeros(8)[::2])


def test_no_dimension():
    check(lambda t: (t.any(dim=()), t.all(dim=[]), t.sum(()), t.var(dim=())), real(2, 3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dim", [0, -1])
def test_softmax(dtype, dim):
    check(lambda t: t.softmax(dim), real(4, 6, dtype=dtype), grad=True)
    check(lambda t: t.log_softmax(dim), real(4, 6, dtype=dtype), grad=True)


def test_softmax_half_to_float():
    check(lambda t: torch.softmax(t, 1, dtype=torch.float32), real(4, 6, dtype=torch.bfloat16))


def test_scans():
    x = real(3, 7)
    check(lambda t: (t.cumsum(1), t.logcumsumexp(1)), x, grad=True)
    check(lambda t: t.cumprod(0), x)
    check(lambda t: (t.cummax(1), t.cummin(0)), x)
    check(lambda t: t.cumsum(0), whole(3, 7, dtype=torch.uint8))
    check(lambda t: t.cumsum(1), real(3, 7, dtype=torch.bfloat16))
    check(lambda t: (t.cummax(1), t.cummin(1)), torch.tensor([[1.0, NAN, 2.0, NAN, 3.0]]))
    check(lambda t: t.cumsum_(1), real(3, 7))
    check(lambda t: t.cumsum(0), torch.zeros(0, 2))
    check(lambda t: t.logcumsumexp(0), torch.complex(real(5), real(5) * 3))


def test_long_scans():  # cut in blocks
    x = whole(9001, 2)
    check(lambda t: (t.cumsum(0), t.cummax(0)), x)
    y = x[:, 0].float()
    y[7000] = NAN
    check(lambda t: (t.cummin(0), t.cummax(0)), y)


def test_trace_and_renorm():
    check(lambda t: torch.trace(t), real(3, 5))
    check(lambda t: torch.renorm(t, 2, 0, 1.5), real(3, 5))
    check_raises(lambda t: torch.trace(t), real(3))
