"""Special functions against the CPU, across the joints of their pieces."""

import pytest
import torch
from oracle import check

pytestmark = pytest.mark.usefixtures("no_fallback")

INF, NAN = float("inf"), float("nan")
LINE = torch.cat(
    [torch.linspace(-30, 30, 241), torch.tensor([0.0, -0.0, 7.999, 8.001, 100.0, INF, -INF, NAN])]
)
HALF_LINE = torch.cat(
    [torch.logspace(-3, 2, 200), torch.tensor([0.0, 1.9999, 2.0001, 8.0, -1.0, NAN])]
)
UNIT = torch.cat(
    [torch.linspace(0, 1, 101), torch.tensor([1e-3, 1e-10, 1e-30, 0.08, 0.92, -0.5, 1.5, NAN])]
)

FUNCTIONS = [
    (torch.i0, LINE[20:-28]),
    (torch.special.i0e, LINE),
    (torch.special.i1, LINE[20:-28]),
    (torch.special.erfcx, LINE[100:-3]),
    (torch.special.log_ndtr, LINE),
    (torch.special.bessel_j0, LINE),
    (torch.special.bessel_j1, LINE),
    (torch.special.bessel_y0, HALF_LINE),
    (torch.special.bessel_y1, HALF_LINE),
    (torch.special.modified_bessel_k0, HALF_LINE),
    (torch.special.modified_bessel_k1, HALF_LINE),
    (torch.special.scaled_modified_bessel_k0, HALF_LINE),
    (torch.special.scaled_modified_bessel_k1, HALF_LINE),
    (torch.special.spherical_bessel_j0, LINE),
    (torch.special.ndtri, UNIT),
    (torch.special.entr, UNIT),
]


@pytest.mark.parametrize(("function", "x"), FUNCTIONS, ids=lambda v: getattr(v, "__name__", ""))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_functions(function, x, dtype):
    close = (
        {"rtol": 5e-5, "atol": 2e-6} if dtype == torch.float32 else {"rtol": 1e-10, "atol": 1e-12}
    )
    if "bessel_j" in function.__name__ or "bessel_y" in function.__name__:
        close = {"rtol": 1e-4, "atol": 1e-6}  # PyTorch's own are good to seven digits
    check(function, x.to(dtype), **close)


def test_incomplete_gamma():
    a = torch.tensor([0.1, 0.9, 1.0, 3.5, 20.0, 150.0, 0.0, INF, -1.0])
    x = torch.tensor([0.0, 1e-3, 0.5, 1.0, 4.0, 21.0, 155.0, INF, NAN, -1.0])
    for t in (torch.float32, torch.float64):
        close = (
            {"rtol": 1e-4, "atol": 1e-6} if t == torch.float32 else {"rtol": 1e-9, "atol": 1e-12}
        )
        check(torch.igamma, a[:, None].to(t), x.to(t), **close)
        check(torch.igammac, a[:, None].to(t), x.to(t), **close)


def test_two_arguments():
    x = torch.tensor([0.0, 0.5, 2.0, NAN])
    check(torch.special.xlog1py, x[:, None], torch.tensor([-1.0, 0.0, 3.0, NAN]), rtol=1e-5)
    s = torch.tensor([1.5, 2.0, 5.0, 10.0])
    check(torch.special.zeta, s[:, None], torch.tensor([0.5, 1.0, 7.0]), rtol=1e-4)
    for n in (0, 1, 2, 3):
        check(lambda t, n=n: torch.polygamma(n, t), torch.tensor([0.3, 1.0, 2.5, 10.0]), rtol=1e-4)


def test_gradients():
    x = torch.linspace(0.1, 0.9, 7, dtype=torch.float64)
    check(lambda t: torch.logit(t, 0.2), x, grad=True)
    check(torch.special.ndtri, x, grad=True)
    check(torch.special.entr, x, grad=True)
    check(torch.i0, x, grad=True)


POLYNOMIALS = [
    "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v",
    "chebyshev_polynomial_w", "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w", "hermite_polynomial_h",
    "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p",
]  # fmt: skip


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name):
    x = torch.tensor([-2.0, -1.0, -0.7, 0.0, 0.3, 0.99, 1.0, 1.5], dtype=torch.float64)
    n = torch.tensor([[-1.0], [0.0], [1.0], [2.0], [3.7], [7.0], [12.0]], dtype=torch.float64)
    function = getattr(torch.special, name)
    check(function, x, n, rtol=1e-9)
    check(function, x.float(), n.float(), rtol=1e-3, atol=1e-3)
    check(lambda x: function(x, 5), x, rtol=1e-9)
    check(function, torch.arange(4), torch.arange(4))
    nan = torch.full((1,), NAN, device="tpu")
    assert function(nan, 3).isnan().all()  # the CPU returns what was in a register


def test_airy():
    x = torch.cat([LINE, torch.tensor([-2.0, 2.0, -1.999, 2.001])])
    check(torch.special.airy_ai, x.double(), rtol=1e-5, atol=3e-6)  # the CPU's own error at -2.75
    check(torch.special.airy_ai, x[80:], rtol=1e-3, atol=1e-5)
    at = torch.tensor([0.0, 1.0, -5.0, 10.0], dtype=torch.float64)
    known = [0.35502805388781724, 0.13529241631288141, 0.35076100902411431, 1.1047532552898686e-10]
    got = torch.special.airy_ai(at.to("tpu")).cpu()
    torch.testing.assert_close(got, torch.tensor(known, dtype=torch.float64), rtol=1e-13, atol=0.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_truncating_division_by_a_broadcast_divisor_is_exact(dtype):
    # XLA turns it into a product with a reciprocal: 49 * (1 / 49) is below 1 in float32.
    a = torch.arange(1, 101).to(dtype)
    divide = lambda a, b: torch.div(a, b, rounding_mode="trunc")  # noqa: E731
    check(divide, a.repeat(3, 1), a)
    check(divide, a.unsqueeze(1).expand(100, 5).contiguous(), a.unsqueeze(1))
    check(divide, torch.full((4, 8), 49.0, dtype=dtype), torch.tensor(49.0, dtype=dtype))


def test_integer_powers_of_broadcast_transposed_operands():
    # A written-out chain of squares took XLA for ever to compile in this layout.
    a, b = torch.arange(50).view(1, 5, 10).permute(2, 0, 1), torch.arange(50).view(5, 10).t() * 2
    check(torch.pow, a, b)
    check(torch.pow, a.to(torch.int32), b.to(torch.int32))


def test_quotients_that_are_floored_are_exact():
    x = torch.arange(48).float()
    check(lambda x: torch.histc(x, bins=47, min=0, max=47), x)
    check(lambda x: torch.round(x, decimals=2), torch.arange(-300, 300) / 100)
    image = torch.arange(50.0).view(1, 1, 1, 50)
    places = 2 * torch.arange(-100, 101) / 49 - 1  # every turn at an edge
    grid = torch.stack([places, torch.zeros(201)], -1).view(1, 1, -1, 2)
    sample = torch.nn.functional.grid_sample
    check(lambda x, g: sample(x, g, "nearest", "reflection", True), image, grid)
