"""Masks as indices, and operators whose result's size depends on data: one host read each."""

import pytest
import torch
from oracle import check, check_raises

MASK = torch.tensor([[True, False, True], [False, True, True]])


@pytest.fixture
def x():
    return torch.arange(6.0).view(2, 3)


def test_read_by_mask(x, counters):
    check(lambda t, m: t[m], x, MASK)
    check(lambda t, m: t[m], x, torch.zeros(2, 3, dtype=torch.bool))
    check(lambda t, m: t[m], x, torch.tensor([True, False]))
    check(lambda t, m: t[:, m], x, torch.tensor([True, False, True]))
    check(lambda t, m, i: t[m, i], x, torch.tensor([True, True]), torch.tensor([0, 2]))
    check(lambda t, m: t[m, None], x, torch.tensor([False, True]))
    check(lambda t, m: t[m], x.t(), MASK.t())
    with pytest.warns(UserWarning, match="uint8"):
        check(lambda t, m: t[m], x, MASK.to(torch.uint8))
    assert counters.fallbacks == 0


def test_read_by_a_mask_on_the_host(x):
    assert x.to("tpu")[MASK].tolist() == x[MASK].tolist()


def test_gradient_of_a_masked_read(x):
    check(lambda t, m: t[m] * 2, x, MASK, grad=True)


def test_write_one_value_reads_nothing(x, counters):
    t, m = x.to("tpu"), MASK.to("tpu")
    counters.reset()
    t[m] = -1.0
    t[m[:, 0]] = 5.0
    t[m] = torch.tensor(2.5).to("tpu")
    assert counters.host_reads == 0 and counters.fallbacks == 0
    want = x.clone()
    want[MASK] = -1.0
    want[MASK[:, 0]] = 5.0
    want[MASK] = 2.5
    assert torch.equal(t.cpu(), want)


def test_write_values(x, counters):
    def write(t, m, v):
        t[m] = v

    check(write, x, MASK, torch.arange(4.0))
    check(write, x, torch.tensor([True, False]), torch.arange(3.0))
    check(write, x.t(), MASK.t(), torch.arange(4.0))
    check(lambda t, m, v: t.index_put_((m,), v, accumulate=True), x, MASK, torch.arange(4.0))
    check(lambda t, m, v: t.index_put((m,), v), x, MASK, torch.tensor(3.0))
    assert counters.fallbacks == 0


def test_f6_masked_write_misses_nothing():
    x = torch.tensor([[1, 2, 2], [1, 2, 3]]).to("tpu")
    x[x == 2] = -1
    assert x.tolist() == [[1, -1, -1], [1, -1, 3]]


def test_wrong_masks(x):
    check_raises(lambda t, m: t[m], x, torch.ones(3, 2, dtype=torch.bool), match="does not match")
    check_raises(lambda t, m: t[m], x, torch.ones(2, 3, 1, dtype=torch.bool))


def test_b5_the_length_is_the_masks_sum():
    mask = torch.rand(100_000) < 0.3
    x, m = torch.rand(100_000).to("tpu"), mask.to("tpu")
    for _ in range(3):
        assert len(x[m]) == int(mask.sum())


def test_nonzero_family(x, counters):
    check(torch.nonzero, x)
    check(lambda t: torch.nonzero(t, as_tuple=True), x)
    check(torch.argwhere, x.to(torch.int32))
    check(torch.nonzero, torch.tensor(3.0))
    check(torch.nonzero, torch.empty(0, 2))
    check(lambda m: torch.where(m), MASK)
    check(lambda t: torch.nonzero_static(t, size=3), x, strides=False)
    check(torch.masked_select, x, MASK)
    check(torch.masked_select, x, torch.tensor([True, False, True]))
    check(lambda t, m, out: torch.masked_select(t, m, out=out), x, MASK, torch.empty(0))
    check(lambda t, out: torch.nonzero(t, out=out), x, torch.empty(0, dtype=torch.int64))
    check(lambda t, m: torch.masked_select(t, m) * 3, x, MASK, grad=True)
    assert counters.fallbacks == 0


def test_unique_family(counters):
    x = torch.tensor([3, 1, 1, 2, 3, 3])
    check(torch.unique, x)
    check(lambda t: torch.unique(t, return_inverse=True, return_counts=True), x)
    check(
        lambda t: torch.unique(t, dim=0, return_counts=True), torch.tensor([[1, 2], [0, 1], [1, 2]])
    )
    check(lambda t: torch.unique_consecutive(t, return_counts=True), x)
    check(lambda t: torch.unique_consecutive(t, dim=0), torch.tensor([[1, 2], [1, 2], [0, 1]]))
    check(torch.bincount, x)
    check(lambda t, w: torch.bincount(t, w, minlength=6), x, torch.rand(6))
    check(lambda t, r: t.repeat_interleave(r), x, torch.tensor([0, 1, 2, 0, 1, 1]))
    check(lambda r: torch.repeat_interleave(r), torch.tensor([2, 0, 1]))
    assert counters.fallbacks == 0


def test_reads_once(x, counters):
    t = x.to("tpu")
    counters.reset()
    torch.nonzero(t)
    assert counters.host_reads == 1 and counters.compiles == 0


def test_asserts():
    torch._assert_async(torch.tensor(True).to("tpu"))
    with pytest.raises(RuntimeError, match="my words"):
        torch._assert_async(torch.tensor(0).to("tpu"), "my words")


def test_gradients_of_masked_writes(x):
    def write_value(t, m):
        y = t * 2
        y[m] = 0.0
        return y

    def write_tensor(t, m, v):
        y = t * 2
        y[m] = v
        return y

    check(write_value, x, MASK, grad=True)
    check(write_tensor, x, MASK, torch.arange(4.0), grad=True)
    check(lambda t, m: torch.zeros_like(t).masked_scatter(m, t), x, MASK)


def test_masks_without_dimensions(x):
    check(lambda t: t[torch.tensor(True)], x)
    check(lambda t, m: t[m], x, torch.tensor(False))
    check(lambda t: t[True], x)
