"""Operators of the user's own, FakeTensor, and other things that meet the dispatcher from
outside."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode


def test_a_python_operator_with_a_gradient():
    @torch.library.custom_op("torch_tpu_test::twice", mutates_args=(), device_types="tpu")
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x + x

    twice.register_fake(lambda x: torch.empty_like(x))
    twice.register_autograd(lambda ctx, g: g + g)
    x = torch.arange(3.0).to("tpu").requires_grad_()
    y = twice(x)
    assert y.tolist() == [0.0, 2.0, 4.0]
    y.backward(torch.ones(3).to("tpu"))
    assert x.grad.tolist() == [2.0] * 3


def test_fake_tensors_start_nothing_and_know_the_device(counters):
    with FakeTensorMode():
        x = torch.empty(2, 3, device="tpu")
        y = x.t() + 1
        assert y.device == torch.device("tpu:0") and y.shape == (3, 2) and y.stride() == (1, 3)
    assert counters.launches == counters.compiles == 0


def test_tensor_subclasses():
    class Tagged(torch.Tensor):
        pass

    x = torch.ones(2).to("tpu").as_subclass(Tagged)
    assert type(x + 1) is Tagged and (x + 1).tolist() == [2.0, 2.0]


def test_dispatch_modes_see_our_calls():
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Spy(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x = torch.ones(2).to("tpu")
    with Spy():
        x.add_(1)
        x * 2
    assert seen == ["aten.add_.Tensor", "aten.mul.Tensor"]


def test_flop_counter():
    from torch.utils.flop_counter import FlopCounterMode

    a = torch.rand(4, 8).to("tpu")
    with FlopCounterMode(display=False) as count:
        a @ a.t()
    assert count.get_total_flops() == 2 * 4 * 8 * 4


def test_packed_sequences_move():
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.rand(3, 2, 4), torch.tensor([3, 2]))
    assert packed.tpu().data.is_tpu


def test_unsupported_types_are_named():
    with pytest.raises(NotImplementedError, match="ComplexHalf"):
        torch.empty(2, dtype=torch.complex32, device="tpu")
    with pytest.raises(NotImplementedError, match=r"quantize_per_tensor|QInt8"):
        torch.quantize_per_tensor(torch.ones(2).to("tpu"), 0.1, 0, torch.qint8)
    with pytest.raises((NotImplementedError, RuntimeError), match=r"(?i)sparse"):
        torch.ones(2).to("tpu").to_sparse()
