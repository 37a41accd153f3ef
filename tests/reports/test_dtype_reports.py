"""Reports D1 to D10: dtypes."""

import math

import pytest
import torch
from oracle import check


def test_d1_max_of_int64():
    x = torch.tensor([1, 2, 3]).to("tpu")
    assert x.max().item() == 3 and x.min().item() == 1


def test_d2_cumsum_of_integers():
    for dtype in (torch.int8, torch.int16, torch.int64):
        y = torch.ones(4).to("tpu").cumsum(0, dtype=dtype)
        assert y.dtype == dtype and y.tolist() == [1, 2, 3, 4]


def test_d3_cumsum_of_bool():
    y = torch.ones(128, dtype=torch.bool).to("tpu").cumsum(0)
    assert y.dtype == torch.int64 and y[-1].item() == 128


def test_d4_left_shift():
    assert (1 << torch.arange(10).to("tpu")).tolist() == [1 << i for i in range(10)]


def test_d5_floor_division_of_infinities():
    inf = math.inf
    a = torch.tensor([inf, -inf, inf, 1.0, -1.0, 1.0])
    b = torch.tensor([1.0, 1.0, 0.0, inf, inf, -inf])
    check(lambda a, b: torch.div(a, b, rounding_mode="floor"), a, b)


def test_d6_true_division_of_integers():
    y = torch.tensor([1]).to("tpu") / 0
    assert y.dtype == torch.float32 and y.item() == math.inf


def test_d7_one_minus():
    check(lambda a: 1.0 - a, torch.tensor([0.0, 0.49, 0.8, 0.9, 0.95]))


def test_d8_python_numbers_do_not_promote():
    y = torch.ones(3, dtype=torch.bfloat16).to("tpu")
    y *= 0.5
    assert y.dtype == torch.bfloat16 and y.tolist() == [0.5] * 3
    assert (y + 1).dtype == (y / 3).dtype == torch.bfloat16
    assert (torch.ones(2, dtype=torch.int32).to("tpu") * 2).dtype == torch.int32


def test_d9_indexing_keeps_the_type():
    y = torch.tensor([4, 5, 6], dtype=torch.uint8).to("tpu")[torch.tensor([1]).to("tpu")]
    assert y.dtype == torch.uint8 and y.tolist() == [5]


def test_d10_cast_after_the_move():
    model = torch.nn.Embedding(10, 3).to("tpu").to(torch.bfloat16)
    assert model(torch.tensor([1, 2]).to("tpu")).dtype == torch.bfloat16


def test_integer_powers_beyond_64_wrap():
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
        base = torch.tensor([0, 1, 2, 3, 5, 7], dtype=dtype)
        if dtype != torch.uint8:
            base = torch.cat([base, -base])
        for e in (0, 1, 31, 63, 64, 65, 100, 127):
            exponent = torch.tensor([e], dtype=dtype)
            check(torch.pow, base, exponent)
            check(lambda b, e=e: b**e, base)
            check(lambda x: 3**x, exponent)


def test_d15_float8_e4m3fn_saturates():
    v = torch.tensor(
        [448.0, 464.0, 465.0, 1e3, 1e9, float("inf"), float("-inf"), float("nan"), -500.0]
    )
    for source in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        x = v.to(source)
        want, got = (t.to(torch.float8_e4m3fn).float().cpu() for t in (x, x.to("tpu")))
        assert torch.equal(got.nan_to_num(-7), want.nan_to_num(-7)), source


def test_variance_of_integers_raises():
    with pytest.raises(RuntimeError, match="only support floating point"):
        torch.var(torch.tensor([1, 5, 9]).to("tpu"))
