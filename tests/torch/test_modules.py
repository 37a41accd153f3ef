"""Modules on the device: identity of parameters, ties, lazy modules, state dicts."""

import copy
import weakref

import torch


def test_to_keeps_the_parameters():
    """An optimizer made before `.to("tpu")` goes on with the same parameters."""
    model = torch.nn.Linear(2, 2)
    weight, holder = model.weight, weakref.ref(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    model.to("tpu")
    assert model.weight is weight is holder() and weight.is_tpu
    assert optimizer.param_groups[0]["params"][0] is model.weight
    model.weight.grad = torch.ones(2, 2).to("tpu")
    model.cpu()
    assert model.weight is weight and weight.grad.device.type == "cpu"
    model.tpu().half()
    assert weight.is_tpu and weight.dtype == torch.float16


def test_tied_weights_stay_tied():
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(5, 3)
            self.head = torch.nn.Linear(3, 5, bias=False)
            self.head.weight = self.embedding.weight

    model = Tied().to("tpu")
    assert model.head.weight is model.embedding.weight
    assert len(list(model.parameters())) == 1
    assert copy.deepcopy(model).head.weight.is_tpu
    other = Tied().to("tpu")
    other.load_state_dict(model.state_dict())
    assert torch.equal(other.head.weight, model.head.weight)


def test_casts_after_the_move_d10():
    """Report D10: moved first and cast second, the outputs stayed float32."""
    model = torch.nn.Embedding(10, 3).to("tpu").to(torch.bfloat16)
    assert model.weight.dtype == torch.bfloat16
    model = torch.nn.Embedding(10, 3).to("tpu", torch.bfloat16)
    assert model.weight.dtype == torch.bfloat16 and model.weight.is_tpu


def test_lazy_modules():
    lazy = torch.nn.LazyLinear(4).tpu()
    assert lazy.weight.device.type == "tpu"
    lazy = torch.nn.LazyLinear(4, device="tpu")
    assert lazy.weight.is_tpu and isinstance(lazy.weight, torch.nn.UninitializedParameter)
    lazy = torch.nn.LazyLinear(4).to("tpu")
    with torch.no_grad():
        lazy.initialize_parameters(torch.ones(2, 3).to("tpu"))
    assert lazy.weight.shape == (4, 3) and lazy.weight.is_tpu


def test_state_dict_across_devices():
    there, here = torch.nn.Linear(2, 2).to("tpu"), torch.nn.Linear(2, 2)
    there.load_state_dict(here.state_dict())
    assert torch.equal(there.weight.cpu(), here.weight)
    here.load_state_dict(there.state_dict())
    assign = torch.nn.Linear(2, 2, device="meta")
    assign.load_state_dict(there.state_dict(), assign=True)
    assert assign.weight.is_tpu
    empty = torch.nn.Linear(2, 2, device="meta").to_empty(device="tpu")
    assert empty.weight.is_tpu


def test_buffers_and_hooks():
    model = torch.nn.BatchNorm1d(2).to("tpu")
    assert model.running_mean.is_tpu and model.num_batches_tracked.is_tpu
    x = torch.ones(2).to("tpu").requires_grad_()
    seen = []
    x.register_hook(lambda g: seen.append(g.device.type))
    (x * 2).backward(torch.ones(2).to("tpu"))
    assert seen == ["tpu"] and x.grad.tolist() == [2.0, 2.0]


def test_backward_first():
    """Report Y2: backward as the very first thing asks hooks, guard and streams."""
    w = torch.nn.Parameter(torch.ones(2).to("tpu"))
    (w * w).backward(torch.ones(2).to("tpu"))
    assert w.grad.tolist() == [2.0, 2.0]


def test_forward_mode_ad():
    from torch.autograd import forward_ad

    with forward_ad.dual_level():
        x = forward_ad.make_dual(torch.ones(2).to("tpu"), torch.full((2,), 3.0).to("tpu"))
        assert forward_ad.unpack_dual(x * x).tangent.tolist() == [6.0, 6.0]


def test_vmap_and_grad():
    x = torch.arange(3.0).to("tpu")
    assert torch.func.vmap(lambda a: a * 2)(x).tolist() == [0.0, 2.0, 4.0]
    assert torch.func.grad(lambda a: a * a)(torch.tensor(3.0).to("tpu")).item() == 6.0


def test_assert_close():
    x = torch.arange(3.0).to("tpu")
    torch.testing.assert_close(x, x.clone())
    torch.testing.assert_close(x, torch.arange(3.0), check_device=False)
    try:
        torch.testing.assert_close(x, x + 1)
    except AssertionError as error:
        assert "Mismatched elements: 3 / 3" in str(error)
    else:
        raise AssertionError("no difference was found")
