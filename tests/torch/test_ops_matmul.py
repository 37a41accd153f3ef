"""Matrix products against the CPU: forms, layouts, dtypes, and what PyTorch says of beta == 0."""

import math

import pytest
import torch
from oracle import check, check_raises, layouts, to_tpu


def draw(*shape, dtype=torch.float32, seed=0):
    g = torch.Generator().manual_seed(seed)
    if not dtype.is_floating_point and not dtype.is_complex:
        return torch.randint(-9, 9, shape, generator=g).to(dtype)
    return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)


FORMS = {
    "mm": (torch.mm, (3, 4), (4, 5)),
    "bmm": (torch.bmm, (2, 3, 4), (2, 4, 5)),
    "mv": (torch.mv, (3, 4), (4,)),
    "dot": (torch.dot, (4,), (4,)),
    "vdot": (torch.vdot, (4,), (4,)),
    "matmul": (torch.matmul, (2, 1, 3, 4), (3, 4, 5)),
    "addmm": (lambda s, a, b: torch.addmm(s, a, b, beta=0.5, alpha=2), (5,), (3, 4), (4, 5)),
    "addmv": (lambda s, a, b: torch.addmv(s, a, b, beta=2, alpha=0.5), (3,), (3, 4), (4,)),
    "addr": (lambda s, a, b: torch.addr(s, a, b, beta=2, alpha=0.5), (3, 4), (3,), (4,)),
    "baddbmm": (lambda s, a, b: torch.baddbmm(s, a, b, beta=0.5), (3, 5), (2, 3, 4), (2, 4, 5)),
    "addbmm": (lambda s, a, b: torch.addbmm(s, a, b, alpha=0.5), (3, 5), (2, 3, 4), (2, 4, 5)),
}


@pytest.mark.parametrize("name", FORMS)
def test_form(name, no_fallback):
    fn, *shapes = FORMS[name]
    operands = [draw(*s, seed=i) for i, s in enumerate(shapes)]
    for kind in ("contiguous", "transposed", "sliced"):
        laid = [layouts(t).get(kind, t) for t in operands]
        check(fn, *laid, grad=kind == "contiguous")


@pytest.mark.parametrize("name", ["mm", "bmm", "mv", "dot", "vdot", "addmm"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16, torch.complex64])
def test_dtype(name, dtype, no_fallback):
    fn, *shapes = FORMS[name]
    check(fn, *[draw(*s, dtype=dtype, seed=i) for i, s in enumerate(shapes)])


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8])
def test_integers_wrap(dtype, no_fallback):
    a, b = draw(3, 70, dtype=dtype), draw(70, 5, dtype=dtype, seed=1)
    check(torch.mm, a, b)
    check(torch.addmm, draw(5, dtype=dtype), a, b)
    check(torch.bmm, a[None], b[None])
    check(torch.dot, a[0], b[:, 0])


def test_half_types_accumulate_in_float32(no_fallback):
    a = torch.full((1, 4096), 1.0, dtype=torch.bfloat16)
    got = torch.mm(a.to("tpu"), a.t().to("tpu"))
    assert got.item() == 4096


def test_beta_zero_does_not_read_self(no_fallback):
    bad = torch.full((3, 5), math.nan)
    check(lambda s, a, b: torch.addmm(s, a, b, beta=0), bad, draw(3, 4), draw(4, 5))
    check(lambda s, a, b: torch.addmv(s, a, b, beta=0), bad[:, 0], draw(3, 4), draw(4))
    check(lambda s, a, b: torch.baddbmm(s, a, b, beta=0), bad, draw(2, 3, 4), draw(2, 4, 5))


def test_new_alphas_compile_nothing(counters):
    s, a, b = (to_tpu(draw(*d)) for d in ((3, 5), (3, 4), (4, 5)))
    torch.addmm(s, a, b, alpha=0.1)
    torch.tpu.synchronize()
    counters.reset()
    for i in range(5):
        torch.addmm(s, a, b, alpha=0.2 + i)
    assert counters.compiles == 0


def test_in_place_and_out(no_fallback):
    a, b = draw(3, 4), draw(4, 5)
    check(lambda s, a, b: s.addmm_(a, b, beta=0.5), draw(3, 5), a, b)
    check(lambda s, a, b: s.addmm_(a, b), layouts(draw(3, 5))["transposed"], a, b)
    check(lambda o, a, b: torch.mm(a, b, out=o), draw(3, 5), a, b)
    check(lambda o, a, b: torch.mm(a, b, out=o.t()), draw(5, 3), a, b)
    check(lambda o, a, b: torch.bmm(a, b, out=o), torch.empty(0), a[None], b[None])


def test_empty(no_fallback):
    check(torch.mm, torch.empty(0, 4), draw(4, 5))
    check(torch.mm, torch.empty(3, 0), torch.empty(0, 5))
    check(torch.bmm, torch.empty(0, 3, 4), torch.empty(0, 4, 5))
    check(torch.dot, torch.empty(0), torch.empty(0))
    check(torch.addmm, draw(3, 5), torch.empty(3, 0), torch.empty(0, 5))


def test_expanded_and_offset(no_fallback):
    row = draw(1, 4).expand(3, 4)
    check(torch.mm, row, draw(4, 5))
    check(torch.mm, draw(8, 6)[2:5, 1:5], draw(4, 5))


def test_special_values(no_fallback):
    a = torch.tensor([[math.inf, 1.0], [math.nan, 0.0]])
    check(torch.mm, a, torch.tensor([[1.0, 2.0], [-0.0, 3.0]]))


def test_errors():
    check_raises(torch.mm, draw(3, 4), draw(5, 4))
    check_raises(torch.mm, draw(3, 4), draw(4, 5, dtype=torch.float64))
    check_raises(torch.mm, draw(3, 4).bool(), draw(4, 5).bool())
    check_raises(torch.dot, draw(3), draw(4))
    check_raises(torch.addmm, draw(2, 2), draw(3, 4), draw(4, 5))


def test_int_mm_and_activation(no_fallback):
    check(torch._int_mm, draw(17, 8, dtype=torch.int8), draw(8, 8, dtype=torch.int8))
    for gelu in (False, True):
        check(
            lambda s, a, b, g=gelu: torch._addmm_activation(s, a, b, use_gelu=g),
            draw(5),
            draw(3, 4),
            draw(4, 5),
        )


def test_grouped(no_fallback):
    ends = torch.tensor([3, 3, 20, 40], dtype=torch.int32)
    half = {"dtype": torch.bfloat16}
    check(torch._grouped_mm, draw(40, 16, **half), draw(4, 16, 8, **half), ends)
    check(torch._grouped_mm, draw(8, 40, **half), draw(40, 8, **half), ends, rtol=2e-2, atol=5e-2)
    check(torch._grouped_mm, draw(4, 8, 16, **half), draw(16, 40, **half), ends)
    check(torch._grouped_mm, draw(4, 8, 16, **half), draw(4, 16, 8, **half))
