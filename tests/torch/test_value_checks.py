"""Values that PyTorch's CPU refuses: known to the device alone, they are reported as bad indices
are, with PyTorch's words, the operator, the argument and the first bad element."""

import pytest
import torch
import torch.nn.functional as F
from torch import tensor

import torch_tpu

BAG, TABLE = tensor([0, 1, 2, 0]), torch.arange(6.0).view(3, 2)
NAN, INF = float("nan"), float("inf")
CASES = {
    # name: (function of a device, what the CPU says or None, what tpu says)
    "bernoulli": (
        lambda d: torch.bernoulli(tensor([0.5, 1.5], device=d)),
        None,
        r"bernoulli expects probabilities in \[0, 1\] \(argument 'self', element 1 is 1.5\).*"
        r"aten::bernoulli",
    ),
    "bernoulli_": (
        lambda d: torch.zeros(2, device=d).bernoulli_(tensor([NAN, 0.5], device=d)),
        None,
        r"in \[0, 1\] \(argument 'p', element 0 is nan\)",
    ),
    "normal": (
        lambda d: torch.normal(torch.zeros(2, device=d), tensor([1.0, -2.0], device=d)),
        "normal expects all elements of std >= 0.0",
        r"\(argument 'std', element 1 is -2\)",
    ),
    "normal of a number": (
        lambda d: torch.normal(0.0, tensor([-1.0, 1.0], device=d)),
        "normal expects all elements of std >= 0.0",
        r"\(argument 'std', element 0 is -1\)",
    ),
    "poisson": (
        lambda d: torch.poisson(tensor([1.0, -1.0], device=d)),
        "invalid Poisson rate, expected rate to be non-negative",
        r"\(argument 'self', element 1 is -1\)",
    ),
    "bce input": (
        lambda d: F.binary_cross_entropy(tensor([0.5, 1.5], device=d), torch.ones(2, device=d)),
        "all elements of input should be between 0 and 1",
        r"\(argument 'self', element 1 is 1.5\)",
    ),
    "bce target": (
        lambda d: F.binary_cross_entropy(torch.ones(2, device=d) / 2, tensor([-1.0, 0], device=d)),
        "all elements of target should be between 0 and 1",
        r"\(argument 'target', element 0 is -1\)",
    ),
    "multinomial negative": (
        lambda d: torch.multinomial(tensor([0.5, -0.5, NAN], device=d), 2, True),
        "probability entry < 0",
        r"\(argument 'self', element 1 is -0.5\)",
    ),
    "multinomial infinite": (
        lambda d: torch.multinomial(tensor([0.5, INF, 1], device=d), 2, True),
        "probability entry = infinity or NaN",
        r"element 1 is inf",
    ),
    "multinomial none": (
        lambda d: torch.multinomial(torch.tensor([[1.0, 1], [0, 0]], device=d), 2, True),
        "sum of probabilities <= 0",
        r"element 1 is 0",
    ),
    "multinomial without replacement": (
        lambda d: torch.multinomial(tensor([0.5, NAN], device=d), 1),
        "probability tensor contains either `inf`, `nan` or element < 0",
        r"element 1 is nan",
    ),
    "segment length negative": (
        lambda d: torch.segment_reduce(
            torch.ones(6, device=d), "sum", lengths=tensor([-1, 7], device=d)
        ),
        "lengths contains negative value!",
        r"\(argument 'lengths', element 0 is -1\)",
    ),
    "segment lengths beyond 32 bits": (
        lambda d: torch.segment_reduce(
            torch.ones(6, device=d), "sum", lengths=tensor([2**32 + 2, 4], device=d)
        ),
        "Expected all rows of lengths along axis to sum to data.size",
        rf"element 0 is {2**32 + 6}",
    ),
    "segments that go back": (
        lambda d: torch.segment_reduce(
            torch.ones(6, device=d), "sum", offsets=tensor([0, 4, 2, 6], device=d)
        ),
        "Expected segment_length >= 0",
        r"element 1 is -2",
    ),
    "first bag not at 0": (
        lambda d: F.embedding_bag(*(t.to(d) for t in (BAG, TABLE, tensor([1, 2])))),
        r"offsets\[0\] has to be 0",
        r"\(argument 'offsets', element 0 is 1\)",
    ),
    "last bag past the end": (
        lambda d: F.embedding_bag(*(t.to(d) for t in (BAG, TABLE, tensor([0, 2**32 + 1])))),
        r"offsets\[-1\] can not be greater than input's length",
        rf"element 0 is {2**32 + 1}",
    ),
    "histc": (
        lambda d: torch.histc(tensor([0, INF], device=d), 4),
        "torch.histc: range of",
        r"element 0 is inf",
    ),
    "histogram": (
        lambda d: torch.histogram(tensor([0, NAN], device=d), 4),
        "torch.histogramdd",
        r"element 0 is nan",
    ),
}
DIVISIONS = {
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "fmod": torch.fmod,
    "trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "//=": lambda a, b: a.__ifloordiv__(b),
}


@pytest.mark.parametrize("name", CASES)
def test_reported_with_the_next_wait(name):
    fn, cpu, tpu = CASES[name]
    with pytest.raises(RuntimeError, match=cpu):
        fn("cpu")
    with pytest.raises(RuntimeError, match="(?s)" + (f"{cpu}.*" if cpu else "") + tpu):
        fn("tpu")
        torch.tpu.synchronize()
    torch.tpu.synchronize()


def test_reported_by_a_host_read_and_at_once_in_debug_mode():
    rate = tensor([-1.0]).to("tpu")
    with pytest.raises(RuntimeError, match="Poisson.*test_value_checks.py"):
        torch.poisson(rate).cpu()
    with torch_tpu.eager_mode("debug"), pytest.raises(RuntimeError, match="Poisson"):
        torch.poisson(rate)


def test_good_values_are_not_reported():
    d = "tpu"
    torch.bernoulli(tensor([0.0, 1.0], device=d))
    torch.normal(0.0, tensor([0.0, 1.0], device=d))
    torch.poisson(tensor([0.0, 3.0], device=d))
    torch.multinomial(tensor([0.0, 3.0, 1.0], device=d), 2, True)
    F.binary_cross_entropy(tensor([0.0, 1.0], device=d), tensor([0.0, 1.0], device=d))
    torch.tpu.synchronize()


@pytest.mark.parametrize("labels", [(1, 5), (1, -1), (1, 2**32 + 1)])
def test_ctc_labels_are_checked_whole(labels):
    scores = torch.zeros(4, 1, 5).log_softmax(-1).to("tpu")
    with pytest.raises(IndexError, match=rf"{labels[1]} is out of bounds.*targets"):
        F.ctc_loss(scores, tensor([labels], device="tpu"), tensor([4]), tensor([2]))
        torch.tpu.synchronize()


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8])
@pytest.mark.parametrize("name", DIVISIONS)
def test_integer_division_by_zero(name, dtype):
    divide = DIVISIONS[name]
    for device in ("cpu", "tpu"):
        a = tensor([1, 2, 3], dtype=dtype, device=device)
        for zero in (0, 2**32):  # which wraps to 0
            with pytest.raises(RuntimeError, match="ZeroDivisionError"):
                divide(a.clone(), zero)
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            divide(a.clone(), tensor([1, 0, 1], dtype=dtype, device=device))
            torch.tpu.synchronize()
        assert divide(a.clone(), tensor([1, 2, 3], dtype=dtype, device=device)).device == a.device
    torch.tpu.synchronize()


def test_division_by_zero_of_floats_and_true_division():
    a = tensor([1, -1, 0]).to("tpu")
    assert (a / 0).tolist()[:2] == [INF, -INF]
    assert (a.float() // 0).tolist()[:2] == [INF, -INF]
    assert (a % 0.0).isnan().all()
    with pytest.raises(NotImplementedError):
        (a > 0) % (a > 0)


def test_a_division_by_a_number_needs_no_check_on_the_device():
    a = tensor([7, 8, 9, 10, 11], device="tpu")
    record = "tensor<8xi32>"
    assert record in torch_tpu.hlo(lambda x: x // x, a)
    assert record not in torch_tpu.hlo(lambda x: x // 3, a)
