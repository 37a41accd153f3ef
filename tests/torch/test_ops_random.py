"""Random fills: moments and tails, streams, types, arguments; nothing recompiles for new
numbers."""

import math

import pytest
import torch

pytestmark = pytest.mark.usefixtures("no_fallback")

N = 100_000


@pytest.fixture(autouse=True)
def seed():
    torch.tpu.manual_seed(1)


def new(dtype=torch.float32, n: int = N) -> torch.Tensor:
    return torch.empty(n, dtype=dtype, device="tpu")


def moments(t: torch.Tensor) -> tuple[float, float]:
    t = t.cpu().double()
    return t.mean().item(), t.std().item()


def near(t: torch.Tensor, mean: float, std: float) -> None:
    got_mean, got_std = moments(t)
    assert abs(got_mean - mean) < 5 * std / math.sqrt(N) + 0.01 * std
    assert abs(got_std - std) < 0.03 * std


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_continuous(dtype):
    u = new(dtype).uniform_()
    near(u, 0.5, math.sqrt(1 / 12))
    assert u.cpu().min() >= 0 and u.cpu().max() < 1
    near(new(dtype).uniform_(-3, 5), 1, 8 * math.sqrt(1 / 12))
    near(new(dtype).normal_(), 0, 1)
    near(new(dtype).normal_(2, 3), 2, 3)
    near(new(dtype).exponential_(2), 0.5, 0.5)
    near(
        new(dtype).log_normal_(0, 0.5),
        math.exp(0.125),
        math.sqrt((math.exp(0.25) - 1) * math.exp(0.25)),
    )
    assert abs(new(dtype).cauchy_(1, 2).cpu().float().median() - 1) < 0.05


def test_normal_tails():
    x = new().normal_().cpu().double().abs()
    for k in (1, 2, 3):
        assert abs((x > k).double().mean() - math.erfc(k / math.sqrt(2))) < 4 / math.sqrt(N)


def test_discrete():
    near(new().bernoulli_(0.3), 0.3, math.sqrt(0.21))
    near(new(torch.bool).bernoulli_(0.3), 0.3, math.sqrt(0.21))
    near(torch.bernoulli(torch.full((N,), 0.7, device="tpu")), 0.7, math.sqrt(0.21))
    near(new(torch.int64).geometric_(0.25), 4, math.sqrt(12))
    near(torch.randint(-7, 12, (N,), device="tpu"), 2, math.sqrt((19**2 - 1) / 12))
    wide = new(torch.int64).random_(-(2**62), 2**62)
    near(wide.double() / 2**62, 0, math.sqrt(1 / 3))
    assert set(new(torch.uint8).random_().cpu().unique().tolist()) == set(range(256))
    assert new(torch.int32).random_().cpu().min() >= 0


def test_permutation():
    p = torch.randperm(1000, device="tpu")
    assert torch.equal(p.cpu().sort()[0], torch.arange(1000))
    assert not torch.equal(p.cpu(), torch.randperm(1000, device="tpu").cpu())


def test_normal_of_tensors():
    mean, std = torch.full((100, 1), 3.0, device="tpu"), torch.full((N // 100,), 2.0, device="tpu")
    out = torch.normal(mean, std)
    assert out.shape == (100, N // 100)
    near(out, 3, 2)
    assert torch.normal(mean, 0.5).shape == mean.shape
    assert torch.normal(1.0, std).shape == std.shape
    near(torch.view_as_real(new(torch.complex64).normal_()), 0, math.sqrt(0.5))


def test_streams():
    state = torch.tpu.get_rng_state()
    first, second = torch.rand(9, device="tpu").cpu(), torch.rand(9, device="tpu").cpu()
    assert not torch.equal(first, second)
    torch.tpu.set_rng_state(state)
    assert torch.equal(torch.rand(9, device="tpu").cpu(), first)
    g = torch.Generator("tpu").manual_seed(7)
    a = torch.rand(3, 3, device="tpu", generator=g).cpu()
    assert torch.equal(torch.rand(9, device="tpu", generator=g.manual_seed(7)).cpu().view(3, 3), a)


def test_numbers_compile_nothing(counters):
    new().uniform_(0, 3)
    torch.randint(0, 5, (N,), device="tpu")
    torch.tpu.synchronize()
    counters.reset()
    for k in range(1, 5):
        new().uniform_(-k, 3 * k)
        torch.randint(k, 50 * k, (N // 4, 4), device="tpu")
    assert counters.compiles == 0 and counters.disk_hits == 0


@pytest.mark.parametrize(
    "fill",
    [
        lambda t: t.normal_(0, -1),
        lambda t: t.uniform_(3, 1),
        lambda t: t.bernoulli_(1.5),
        lambda t: t.exponential_(-1),
        lambda t: t.geometric_(0),
        lambda t: t.random_(5, 5),
        lambda t: t.log_normal_(0, 0),
        lambda t: t.to(torch.uint8).random_(0, 1000),
    ],
)
def test_refused_numbers(fill):
    for _ in range(2):  # also where the program is known
        with pytest.raises(RuntimeError):
            fill(new(n=4))


def test_multinomial():
    p = torch.tensor([0.1, 0.0, 0.3, 0.6])
    out = torch.multinomial(p.to("tpu"), N, replacement=True).cpu()
    assert torch.allclose(torch.bincount(out, minlength=4) / N, p, atol=0.01)
    rows = torch.multinomial(p.repeat(5000, 1).to("tpu"), 1).cpu()
    assert torch.allclose(torch.bincount(rows.flatten(), minlength=4) / 5000, p, atol=0.03)
    three = torch.multinomial(p.to("tpu"), 3).cpu()
    assert sorted(three.tolist()) == [0, 2, 3]
    for bad in ([0.0, 0.0], [-1.0, 2.0], [math.nan, 1.0]):
        with pytest.raises((RuntimeError, IndexError)):
            torch.multinomial(torch.tensor(bad, device="tpu"), 1).cpu()
    with pytest.raises(RuntimeError):
        torch.multinomial(p.to("tpu"), 5)


def test_rejection():
    for shape in (0.5, 3.0):
        near(torch._standard_gamma(torch.full((N,), shape, device="tpu")), shape, math.sqrt(shape))
    for rate in (0.7, 30.0):
        near(torch.poisson(torch.full((N,), rate, device="tpu")), rate, math.sqrt(rate))
    assert torch.poisson(torch.zeros(3, device="tpu")).cpu().tolist() == [0, 0, 0]
    for n, p in ((5.0, 0.3), (100.0, 0.8)):
        count = torch.full((N,), n, device="tpu")
        near(
            torch.binomial(count, torch.tensor(p, device="tpu").expand(N)),
            n * p,
            math.sqrt(n * p * (1 - p)),
        )
    d = torch._sample_dirichlet(
        torch.tensor([[1.0, 2.0, 3.0]], device="tpu").expand(N // 10, 3)
    ).cpu()
    assert torch.allclose(d.sum(1), torch.ones(N // 10), atol=1e-5)
    assert torch.allclose(d.mean(0), torch.tensor([1, 2, 3]) / 6, atol=0.02)


def test_gradients_of_draws():
    # The derivative of the quantile: PyTorch's own formulas are good to about 1e-3.
    g = torch.Generator().manual_seed(0)
    a = torch.rand(64, generator=g, dtype=torch.float64) * torch.logspace(-1, 3, 64) + 1e-2
    x = torch._standard_gamma(a, generator=g)
    got = torch._standard_gamma_grad(a.to("tpu"), x.to("tpu")).cpu()
    torch.testing.assert_close(got, torch._standard_gamma_grad(a, x), rtol=3e-3, atol=1e-6)
    b = torch.rand(64, generator=g, dtype=torch.float64) * 5 + 0.05
    a = a.clamp(max=20)
    x = torch.rand(64, generator=g, dtype=torch.float64)
    got = torch._dirichlet_grad(x.to("tpu"), a.to("tpu"), (a + b).to("tpu")).cpu()
    torch.testing.assert_close(got, torch._dirichlet_grad(x, a, a + b), rtol=1e-2, atol=1e-6)
    p = torch.tensor([0.5, 2.0, 3.0], device="tpu", requires_grad=True)
    torch.distributions.Dirichlet(p).rsample((4,))[:, 0].sum().backward()
    assert p.grad.isfinite().all() and p.grad[0] > 0 > p.grad[1]
