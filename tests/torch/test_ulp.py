"""Errors of transcendental functions in units in the last place, at few points on and around the
joints of their pieces (tools/ulp_table.py looks at 400,000), and the values at the edges."""

import math

import pytest
import torch
from oracle import check

pytestmark = pytest.mark.usefixtures("no_fallback")

INF, NAN = math.inf, math.nan
F = torch.nn.functional


def spread(low: float, high: float, *joints: float) -> torch.Tensor:
    g = torch.Generator().manual_seed(0)
    even = torch.rand(4000, dtype=torch.float64, generator=g) * (high - low) + low
    tiny = torch.exp2(torch.rand(500, dtype=torch.float64, generator=g) * 60 - 60)
    near = [j + torch.linspace(-0.02, 0.02, 200, dtype=torch.float64) for j in joints]
    x = torch.cat([even, tiny, -tiny, *near, *(-t for t in near)])
    return x[(x > low) & (x < high)]


# Function, arguments, bounds in float32 and in float64 (of the CPU's float64 results there).
ACCURATE = {
    "expm1": (torch.expm1, spread(-80, 88, 0.5), 2.5, 4),
    "sinh": (torch.sinh, spread(-88, 88, 1.0), 3.5, 4),
    "cosh": (torch.cosh, spread(-88, 88, 1.0), 3.5, 4),
    "tanh": (torch.tanh, spread(-20, 20, 0.6), 2.5, 3),
    "erf": (torch.erf, spread(-6, 6, 1.0), 2.5, 3),
    "erfc": (torch.erfc, spread(-6, 9, 0.8), 4, 5),
    "erfinv": (torch.erfinv, spread(-1, 1, 0.9966), 4, 5),
    "lgamma": (torch.lgamma, spread(0, 40, 0.75, 1.0, 2.0, 2.5, 8.0), 4, 5),
    "mish": (F.mish, spread(-60, 60), 4.5, 6),
}


def ulps(got: torch.Tensor, exact: torch.Tensor, eps: float) -> float:
    ulp = torch.exp2(torch.floor(torch.log2(exact.abs()))) * eps
    error = (got.double() - exact).abs() / ulp
    return error[exact != 0].max().item()


@pytest.mark.parametrize("name", ACCURATE)
def test_units_in_the_last_place(name):
    function, wide, bound, bound64 = ACCURATE[name]
    x = wide.float()
    exact = function(x.double())
    assert ulps(function(x.to("tpu")).cpu(), exact, 2.0**-23) <= bound
    got = function(wide.to("tpu")).cpu()
    assert ulps(got, function(wide), 2.0**-52) <= bound64


def test_half_types_round_once():
    for name, (function, wide, _, _) in ACCURATE.items():
        for t in (torch.bfloat16, torch.float16):
            x = wide[wide.abs() < 8].to(t)
            x = x[(x.abs() < 1) | (name != "erfinv")]
            exact = function(x.double())
            normal = exact.isfinite() & (exact.abs() >= torch.finfo(t).tiny)
            eps = torch.finfo(t).eps
            got = function(x.to("tpu")).cpu()
            assert ulps(got[normal], exact[normal], eps) <= 0.51, (name, t)


EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, -3.0, 1.5, -1.5, 30.0, -30.0, 88.0, 89.0,
         89.5, -88.0, -89.0, 104.0, -104.0, 1e4, -1e4, 1e30, -1e30, 3.4e38, -3.4e38, INF, -INF,
         NAN]  # fmt: skip


@pytest.mark.parametrize("name", ACCURATE)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_edges(name, dtype):
    function = ACCURATE[name][0]
    x = torch.tensor(EDGES, dtype=dtype)
    if name == "mish":  # exp(-88) is a denormal
        x = x[~((x < -80) & (x > -110))]
    got, expected = function(x.to("tpu")).cpu(), function(x)
    assert torch.equal(got.isnan(), expected.isnan()), (x, got, expected)
    assert torch.equal(got.isinf(), expected.isinf()), (x, got, expected)
    zero = expected == 0
    assert torch.equal(got == 0, zero), (x, got, expected)
    assert torch.equal(got[~got.isnan()].signbit(), expected[~got.isnan()].signbit())
    torch.testing.assert_close(got, expected, rtol=1e-6, atol=0, equal_nan=True)


def test_domain_of_erfinv():
    x = torch.tensor([1.0000001, -1.0000001, 2.0, -INF, 1.0, -1.0, 0.99999994, -0.99999994])
    check(torch.erfinv, x, rtol=1e-6)


def test_left_of_zero_lgamma():
    x = torch.tensor(
        [-0.5, -1e-20, -0.7499, -0.7501, -1.5, -2.2, -3.9999, -7.3, -20.5, -1000.5, -2.5e6, -1e20]
    )
    check(torch.lgamma, x, rtol=1e-6)
    check(torch.lgamma, x.double(), rtol=1e-13)
    poles = -torch.arange(9.0)
    assert (torch.lgamma(poles.to("tpu")).cpu() == INF).all()


def test_integers_and_complex():
    whole = torch.arange(-3, 4)
    z = torch.tensor([0.3 + 0.4j, -1.0 + 2.0j])
    for function in (torch.expm1, torch.sinh, torch.cosh, torch.tanh):
        check(function, whole, rtol=1e-6)
        check(function, z, rtol=1e-5)
    for function in (torch.erf, torch.erfc, torch.lgamma):
        check(function, whole, rtol=1e-6)


def test_gradients():
    x = torch.linspace(-0.9, 0.9, 8, dtype=torch.float64)
    for name, (function, _, _, _) in ACCURATE.items():
        check(function, x + 1.0 if name == "lgamma" else x, grad=True)
