"""Reads and writes at places given by index tensors, masks, and bad indices."""

import pytest
import torch
from oracle import check, check_raises, expanded, layouts

pytestmark = pytest.mark.usefixtures("no_fallback")


def real(*shape: int, dtype=torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1)).to(dtype)


def index(*shape: int, bound: int) -> torch.Tensor:
    return torch.randint(-bound, bound, shape, generator=torch.Generator().manual_seed(2))


ROWS = torch.tensor([[2, -1], [0, 2]])
COLUMNS = torch.tensor([3, 1])


def test_index_layouts_and_gradient():
    for x in layouts(real(3, 4)).values():
        check(lambda t, i: t[i], x, ROWS, grad=True)
    check(lambda t, i: t[i], expanded(real(4)), ROWS, grad=True)


@pytest.mark.parametrize(
    "read",
    [
        lambda t, i, j: t[:, i, j],
        lambda t, i, j: t[i, :, j],
        lambda t, i, j: t[i, j],
        lambda t, i, j: t[..., j],
        lambda t, i, j: t[0, i, :2],
        lambda t, i, j: t[i[:0]],
    ],
)
def test_index_forms(read):
    check(read, real(3, 3, 4), ROWS, COLUMNS - 1, grad=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int64, torch.uint8, torch.bool])
def test_index_types(dtype):
    x = (real(3, 4) > 0).to(dtype)
    check(lambda t, i: (t[i.int()], t.take(i), t.index_select(0, i[0].int() % 3)), x, ROWS)


def test_masks():
    x = real(4, 3)
    check(lambda t, m: (t[m > 0], t[(m > 0)[:, 0]]), x, real(4, 3))

    def write(t, m):
        t[m > 0] = 7.0
        t.masked_fill_(m[:, :1] < 0, -1)
        return t.masked_fill(m < -1, float("inf"))

    check(write, x, real(4, 3))
    check(lambda t, m, s: t.masked_scatter(m > 0, s), x, real(4, 3), real(12), grad=True)
    check(lambda t, m, s: t.masked_scatter_(m > 0, s), real(40, 50), real(50), real(2000))
    check(lambda t, m: t.masked_fill(m, 2.5), x, torch.zeros(4, 3, dtype=torch.bool), grad=True)


def test_index_put():
    def write(t, i, j, v):
        t[i, j] = v
        t.index_put_((i[0],), v[0, 0], accumulate=True)
        t[:, j] = 3
        return t

    for x in layouts(real(3, 4)).values():
        check(write, x, ROWS, COLUMNS, real(2, 2))
    check(
        lambda t, i, v: t.index_put((i, i), v, accumulate=True),
        real(3, 3),
        ROWS,
        real(2, 2),
        grad=True,
    )
    half = real(3, dtype=torch.bfloat16)
    check(lambda t, i, v: t.index_put_((i,), v, accumulate=True), half, index(40, bound=3),
          real(40, dtype=torch.bfloat16), rtol=0.05, atol=0.05)  # fmt: skip
    check_raises(lambda t, i, v: t.index_put_((i,), v), real(3, 4), ROWS[0], real(3))


def test_last_write_wins():
    i = torch.zeros(6, dtype=torch.long)
    v = torch.arange(6.0)
    check(lambda t, i, v: (t.index_put((i,), v), t.scatter(0, i, v), t.put(i, v)), real(3), i, v)
    check(lambda t, i, v: t.index_copy(0, i, v), real(3), i, v)


@pytest.mark.parametrize("dim", [0, 1])
def test_gather_and_scatter(dim):
    i = index(2, 3, bound=3).abs() % 3
    for x in layouts(real(3, 4)).values():
        check(lambda t, i: t.gather(dim, i), x, i, grad=True)
        check(
            lambda t, i, s: (t.scatter_add(dim, i, s), t.scatter(dim, i, 2.5)),
            x,
            i,
            real(2, 3),
            grad=True,
        )
        check(
            lambda t, i, s: (t.scatter_add(dim, i, s), t.scatter(dim, i, s[:2])),
            x,
            i * 0,
            real(3, 4),
        )
    check(lambda t, i, s: t.scatter_(dim, i, s, reduce="multiply"), real(3, 4), i, real(3, 4))
    check(lambda t, i: torch.take_along_dim(t, i, dim), real(3, 3), i.repeat(2, 1)[:3])
    check(lambda t, i: t.gather(0, i), torch.tensor(2.0), torch.tensor(0))


@pytest.mark.parametrize("how", ["sum", "prod", "mean", "amax", "amin"])
def test_scatter_reduce(how):
    x, source = real(3, 4), real(5, 4)
    source[0, 0] = float("nan")
    i = index(5, 4, bound=3).abs() % 3
    for include in (True, False):
        check(
            lambda t, i, s, n=include: t.scatter_reduce(0, i, s, how, include_self=n), x, i, source
        )
        check(lambda t, i, s, n=include: t.scatter_reduce(0, i, s, how, include_self=n),
              x.mul(4).long(), i, real(5, 4).mul(4).long())  # fmt: skip
    if how != "sum":
        check(lambda t, i, s: t.index_reduce(0, i, s, how), x, i[:, 0], real(5, 4))


def test_index_writes():
    i = torch.tensor([1, -1, 1])
    for x in layouts(real(3, 4)).values():
        check(lambda t, i, s: t.index_add(1, i, s, alpha=2), x, i % 4, real(3, 3), grad=True)
        check(
            lambda t, i, s: (t.index_copy_(1, i, s), t.index_fill(0, i[:1], 5)),
            x,
            i % 4,
            real(3, 3),
        )
    check(lambda t, i, s: t.put_(i, s, accumulate=True), real(3, 4), ROWS, real(2, 2))
    check(lambda t: t.unfold(0, 3, 2).mul(2), real(9), grad=True)


def test_bad_indices():
    x = real(3, 4)
    for bad in ([5], [-4]):
        i = torch.tensor(bad)
        check_raises(lambda t, i: t[i], x, i)
        check_raises(lambda t, i: t.index_select(0, i), x, i)
        with pytest.raises(IndexError):  # a RuntimeError on the CPU
            x.to("tpu").gather(0, i[:, None].to("tpu")).cpu()
    t = x.to("tpu")
    i = torch.tensor([0, 2**32 + 1]).to("tpu")  # 1 in 32 bits
    with pytest.raises(IndexError):
        t[i] = 9.0
        torch.tpu.synchronize()
    want = x.clone()
    want[0] = 9.0
    assert torch.equal(t.cpu(), want)
