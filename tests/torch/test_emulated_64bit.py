"""What is written otherwise on devices without 64-bit arithmetic (TPUs) gives the same numbers:
here on a CPU plugin with the capability forced off."""

import fresh_process

OFF = {"TORCH_TPU_DISABLE_CAPABILITIES": "native_64bit", "TORCH_TPU_FALLBACK": "error"}


def test_division_is_exact():
    fresh_process.run(
        """
        g = torch.Generator().manual_seed(0)
        def numbers(n):  # of every length in bits, both signs
            x = torch.randint(-(2**63), 2**63 - 1, (n,), generator=g)
            return x >> torch.randint(0, 63, (n,), generator=g)
        edges = torch.tensor([1, -1, 2, 3, 2**31, 2**32 - 1, 2**32, 2**32 + 1, -(2**63), 2**63 - 1])
        a = torch.cat([numbers(100_000), edges.repeat_interleave(10), numbers(1000)])
        b = torch.cat([numbers(100_000), edges.repeat(10), torch.full((1000,), 3)])
        b = b.where(b != 0, 1)
        b = b.where((b != -1) | (a != -(2**63)), 1)  # a trap on the host
        x, y = a.to("tpu"), b.to("tpu")
        for mode in ("floor", "trunc"):
            assert torch.equal(torch.div(x, y, rounding_mode=mode).cpu(),
                               torch.div(a, b, rounding_mode=mode)), mode
        assert torch.equal((x % y).cpu(), a % b)
        assert torch.equal(torch.fmod(x, y).cpu(), torch.fmod(a, b))
        assert torch.equal(torch.gcd(x, y).cpu(), torch.gcd(a, b))
        assert (x // 7).cpu().equal(a // 7)
        """,
        **OFF,
    )


def test_products_are_exact():
    fresh_process.run(
        """
        import torch.nn.functional as F
        g = torch.Generator().manual_seed(0)
        def whole(*sizes, dtype=torch.int64):
            return torch.randint(-(2**62), 2**62, sizes, generator=g).to(dtype)
        for dtype in (torch.int64, torch.int32):
            a, b = whole(7, 33, dtype=dtype), whole(33, 5, dtype=dtype)
            x, y = a.to("tpu"), b.to("tpu")
            assert torch.equal((x @ y).cpu(), a @ b)
            assert torch.equal((x @ y[:, 0]).cpu(), a @ b[:, 0])
            assert torch.equal((x[0] @ y[:, 0]).cpu(), a[0] @ b[:, 0])
            assert torch.equal((x.t() @ y.t()[:, :7].t()).cpu(), a.t() @ b.t()[:, :7].t())
            c = whole(5, dtype=dtype)
            assert torch.equal(torch.addmm(c.to("tpu"), x, y).cpu(), torch.addmm(c, a, b))
            d, e = whole(3, 4, 6, dtype=dtype), whole(3, 6, 2, dtype=dtype)
            assert torch.equal(torch.bmm(d.to("tpu"), e.to("tpu")).cpu(), torch.bmm(d, e))
        long = whole(2, 40_000), whole(40_000, 3)
        assert torch.equal((long[0].to("tpu") @ long[1].to("tpu")).cpu(), long[0] @ long[1])
        image = whole(2, 4, 9, 8)
        for groups, weight in ((1, whole(6, 4, 3, 3)), (2, whole(6, 2, 3, 3))):
            want = F.conv2d(image, weight, stride=2, padding=1, groups=groups)
            got = F.conv2d(image.to("tpu"), weight.to("tpu"), stride=2, padding=1, groups=groups)
            assert torch.equal(got.cpu(), want), groups
        """,
        **OFF,
    )


def test_incomplete_gamma():
    fresh_process.run(
        """
        a = torch.logspace(-2, 3, 40).repeat_interleave(40)
        x = torch.logspace(-2, 3, 40).repeat(40)
        for fn in (torch.special.gammainc, torch.special.gammaincc):
            want = fn(a.double(), x.double())
            torch.testing.assert_close(fn(a.to("tpu"), x.to("tpu")).cpu().double(), want,
                                       rtol=3e-5, atol=1e-6)
        """,
        **OFF,
    )


def test_counts():
    fresh_process.run(
        """
        torch.manual_seed(1)
        n = 40_000
        def near(got, mean, std):
            got = got.double()
            assert abs(got.mean() - mean) < 5 * std / n**0.5, (got.mean(), mean)
            assert abs(got.std() / std - 1) < 0.03, (got.std(), std)
        for rate in (0.5, 9.0, 12.0, 300.0, 1e5, 1e6):
            near(torch.poisson(torch.full((n,), rate, device="tpu")).cpu(), rate, rate**0.5)
        for count, p in ((5.0, 0.3), (40.0, 0.5), (1000.0, 0.9), (1e6, 0.25)):
            got = torch.binomial(torch.full((n,), count, device="tpu"),
                                 torch.full((n,), p, device="tpu")).cpu()
            near(got, count * p, (count * p * (1 - p))**0.5)
        """,
        **OFF,
    )


def test_what_no_tpu_can_do_says_so():
    out = fresh_process.run(
        """
        print(raised(lambda: torch.fft.fft(torch.ones(4, dtype=torch.complex128, device="tpu"))))
        print(raised(lambda: torch.fft.rfft(torch.ones(4, dtype=torch.float64, device="tpu"))))
        print(raised(lambda: torch.fft.fft(torch.ones(4, device="tpu")).sum().item()))
        """,
        **OFF,
    ).stdout.split("\n")
    assert out[0].startswith("NotImplementedError: ") and out[1].startswith("NotImplementedError: ")
    assert "_fft_c2c" in out[0] and "complex128" in out[0] and "complex64" in out[0]
    assert "_fft_r2c" in out[1] and "float64" in out[1] and "float32" in out[1]
    assert out[2] == "nothing was raised"


def test_sorts_keep_values_and_order():
    fresh_process.run(
        """
        g = torch.Generator().manual_seed(0)
        special = torch.tensor([0.0, -0.0, float("nan"), -float("nan"), float("inf"), -float("inf"),
                                1.0, -1.0, 3.4e38, -3.4e38, 1e-30, 0.0, -0.0])
        floats = torch.cat([torch.randn(500, generator=g).round(decimals=1), special])
        wide = torch.randint(-(2**62), 2**62, (300,), generator=g)
        for a in (floats, floats.bfloat16(), floats.half(), floats.double(), wide, wide >> 60,
                  wide.int(), wide.byte(), wide > 0, floats.view(27, 19)):
            for dim in range(a.dim()):
                for descending in (False, True):
                    want = torch.sort(a, dim=dim, descending=descending, stable=True)
                    got = torch.sort(a.to("tpu"), dim=dim, descending=descending,
                                     stable=True)
                    assert torch.equal(got.indices.cpu(), want.indices), (a.dtype, descending)
                    torch.testing.assert_close(got.values.cpu(), want.values, rtol=0, atol=0,
                                               equal_nan=True)
                    if a.is_floating_point():
                        kept = torch.signbit(got.values.cpu()) == torch.signbit(want.values)
                        assert (kept | want.values.isnan()).all(), (a.dtype, descending)
                for largest in (False, True):
                    want = a.topk(5, dim, largest) if a.dtype != torch.bool else None
                    if want is not None:
                        got = a.to("tpu").topk(5, dim, largest)
                        torch.testing.assert_close(got.values.cpu(), want.values, rtol=0, atol=0,
                                                   equal_nan=True)
        """,
        **OFF,
    )


def test_gradients_of_draws():
    fresh_process.run(
        """
        a = torch.logspace(-2, 4, 25).repeat_interleave(15)
        x = a * torch.linspace(0.3, 2.0, 15).repeat(25)
        want = torch._standard_gamma_grad(a.double(), x.double())
        got = torch._standard_gamma_grad(a.to("tpu"), x.to("tpu")).cpu().double()
        near = (x - a).abs() < 4 * a.sqrt()  # where draws fall
        torch.testing.assert_close(got[near], want[near], rtol=2e-3, atol=2e-3)
        total = torch.full((99,), 5.0)
        x, a = torch.linspace(0.01, 0.99, 99), torch.full((99,), 2.0)
        want = torch._dirichlet_grad(x.double(), a.double(), total.double())
        got = torch._dirichlet_grad(x.to("tpu"), a.to("tpu"), total.to("tpu")).cpu().double()
        torch.testing.assert_close(got, want, rtol=2e-3, atol=2e-3)
        """,
        **OFF,
    )


def test_grid_sampler_gradient():
    fresh_process.run(
        """
        import torch.nn.functional as F
        x, grid = torch.randn(2, 3, 4, 5, 6), torch.rand(2, 3, 4, 5, 3) * 2.4 - 1.2
        def run(device):
            a, b = x.to(device).requires_grad_(), grid.to(device).requires_grad_()
            F.grid_sample(a, b, align_corners=False).square().sum().backward()
            return a.grad.cpu(), b.grad.cpu()
        torch.testing.assert_close(run("tpu"), run("cpu"), rtol=1e-4, atol=1e-4)
        """,
        **OFF,
    )
