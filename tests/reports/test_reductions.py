"""Reports G1-G6 and I1-I4: NaN, empty reductions, order statistics."""

import pytest
import torch
from oracle import check

NAN = float("nan")


def test_g1_maximum_and_minimum_keep_nan():
    a, b = torch.tensor([1.0, NAN]), torch.tensor([NAN, 1.0])
    check(torch.maximum, a, b)
    check(torch.minimum, a, b)


def test_g2_max_and_argmax_see_nan():
    x = torch.tensor([1.0, NAN, 3.0])
    check(torch.max, x)
    check(torch.argmax, x)
    check(torch.min, x)


def test_g2_max_of_many_elements_sees_nan():
    x = torch.zeros(8192)
    x[5000] = NAN
    check(torch.max, x)
    check(lambda x: x.amax(), x)


def test_g3_values_and_places_agree():
    x = torch.tensor([[1.0, NAN, 3.0, NAN], [2.0, 5.0, 5.0, 1.0]])
    check(lambda x: tuple(torch.max(x, 1)), x)
    check(lambda x: tuple(torch.min(x, 1)), x)


def test_g4_zero_to_the_zero_is_one():
    check(torch.pow, torch.zeros(3), torch.zeros(3))


def test_g5_max_of_negatives():
    check(torch.max, -torch.ones(5))
    check(lambda x: x.amax(0), torch.full((3, 2), -7, dtype=torch.int64))


def test_empty_reductions():
    x = torch.empty(0, 3)
    for fn in (torch.sum, torch.prod, torch.mean):
        check(fn, x)
    check(lambda x: x.sum(0), x)
    check(torch.any, x.bool())
    check(torch.all, x.bool())
    with pytest.raises((RuntimeError, IndexError)):
        torch.max(torch.empty(0).to("tpu"))


def test_i1_topk_of_thirty():
    check(lambda x: tuple(x.topk(30)), torch.arange(30))


def test_i2_argsort_along_a_short_dimension():
    torch.manual_seed(0)
    x = torch.rand(3, 4097)
    check(lambda x: x.sort(0).values, x)


def test_i3_topk_puts_nan_first():
    x = torch.tensor([NAN, 1.0, 3.0, float("inf")])
    check(lambda x: x.topk(2).values, x)


def test_i4_topk_of_rank_six():
    torch.manual_seed(0)
    x = torch.rand(2, 1, 3, 1, 2, 2)
    check(lambda x: x.topk(2, dim=0).values, x)


def test_g6_zeros_are_equal_whatever_their_sign():
    for values in ([-0.0, 0.0], [0.0, -0.0]):
        x = torch.tensor(values)
        for fn in (
            torch.relu,
            lambda t: torch.maximum(t, t.flip(0)),
            lambda t: torch.sort(t)[0],
            lambda t: t.amin(0),
        ):
            assert torch.equal(fn(x.to("tpu")).cpu(), fn(x))
        # Where no operand has another sign, it stays.
        got = torch.stack([-x.abs(), x.abs()]).to("tpu").neg().neg().cpu()
        assert torch.equal(torch.signbit(got), torch.tensor([[True] * 2, [False] * 2]))
