"""Reports D1 to D22: dtypes. Not D20, of custom kernels."""

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


def test_d11_no_environment_variable_changes_a_dtype(monkeypatch):
    for name in ("XLA_USE_BF16", "XLA_DOWNCAST_BF16", "XLA_USE_F16"):
        monkeypatch.setenv(name, "1")
    for dtype in (torch.float16, torch.float32, torch.float64):
        assert torch.relu(torch.ones(3, dtype=dtype, device="tpu")).dtype == dtype
    third = torch.tensor([1 / 3], device="tpu")
    assert (third + 0).item() == torch.tensor(1 / 3).item()


def test_d12_nextafter_in_bfloat16():
    x = torch.tensor([1.5391, -1.0, 0.0, 3.0], dtype=torch.bfloat16)
    y = torch.tensor([-1.0, 2.0, 1.0, 3.0], dtype=torch.bfloat16)
    got = torch.nextafter(x.to("tpu"), y.to("tpu"))
    assert got[0].item() == 1.53125
    # The smallest number is no normal one: those count as zero on some plugins.
    keep = torch.tensor([True, True, False, True])
    assert torch.equal(got.cpu()[keep], torch.nextafter(x, y)[keep])


def test_d13_a_lazy_conjugate_is_seen_by_matmul():
    r = torch.tensor([[1j, 2 + 1j]])
    check(lambda r: r.T.conj() @ r, r)
    check(lambda r: r.conj() @ r.T, r)
    assert (torch.tensor([[1j]]).to("tpu").T.conj() @ torch.tensor([[1j]]).to("tpu")).item() == 1


def test_d14_irfft_of_odd_lengths():
    for n in (5, 4):
        x = torch.linspace(0, 1, n)
        check(lambda t: torch.fft.irfft(torch.fft.rfft(t), t.numel()), x)
        back = torch.fft.irfft(torch.fft.rfft(x.to("tpu")), n).cpu()
        assert torch.allclose(back, x, atol=1e-6)


def test_d16_linear_in_half_types():
    x, w, b = torch.randn(4, 33), torch.randn(5, 33) / 6, torch.randn(5)
    for dtype in (torch.float16, torch.bfloat16):
        a = [t.to(dtype) for t in (x, w, b)]
        got = torch.nn.functional.linear(*(t.to("tpu") for t in a))
        want = torch.nn.functional.linear(*(t.float() for t in a))
        assert got.dtype == dtype
        assert torch.allclose(got.float().cpu(), want, rtol=2e-2, atol=2e-2)


def test_d17_d18_float32_products_are_float32():
    """By default, and whatever the setting, on a CPU plugin: rows together as rows alone."""
    x, w = torch.randn(2, 4), torch.randn(4, 2)
    a, b = torch.tensor([[1.2345, 2.3456], [3.4567, 4.5678]]), torch.tensor([[5.6789, 6.789]] * 2)
    assert torch.get_float32_matmul_precision() == "highest"
    got = (a.to("tpu") @ b.to("tpu")).cpu()
    assert torch.allclose(got.double(), a.double() @ b.double(), rtol=1e-6)
    together, alone = x.to("tpu") @ w.to("tpu"), [row.to("tpu") @ w.to("tpu") for row in x.split(1)]
    assert torch.allclose(together.cpu(), torch.cat(alone).cpu(), rtol=1e-6)


def test_d19_an_unknown_dtype_is_refused_by_name():
    for dtype in (torch.quint8, torch.float4_e2m1fn_x2, torch.complex32, torch.bits8, torch.int1):
        with pytest.raises(NotImplementedError, match="tpu has no|Quantizedtpu"):
            torch.empty(2, dtype=dtype, device="tpu")


def test_d21_tanh_gelu_in_bfloat16():
    x = torch.arange(8, 16, 0.5, dtype=torch.bfloat16)
    got = torch.nn.functional.gelu(x.to("tpu"), approximate="tanh").cpu()
    assert torch.equal(got, x)
    check(lambda t: torch.nn.functional.gelu(t, approximate="tanh"), x, grad=True)


def test_d22_floor_division_of_int64():
    x = torch.tensor([1, 2, 3, 4]).to("tpu")
    out = torch.div(x, 400, rounding_mode="floor")
    assert out.dtype == torch.int64 and out.tolist() == [0, 0, 0, 0]
    with pytest.raises(RuntimeError, match="(?i)bool"):
        torch.div(x > 0, x > 0, rounding_mode="floor")
    assert x.tolist() == [1, 2, 3, 4], "the process lives"
