"""Autocast by CUDA's lists with bfloat16, and GradScaler. Reports Q2 to Q5."""

import threading

import pytest
import torch


@pytest.fixture
def x():
    return torch.randn(4, 4).to("tpu")


def test_default_type():
    assert torch.get_autocast_dtype("tpu") == torch.bfloat16
    with torch.autocast("tpu"):
        assert torch.is_autocast_enabled("tpu")
    assert not torch.is_autocast_enabled("tpu")


def test_default_type_in_another_thread():
    seen = []

    def work():
        with torch.autocast("tpu"):
            seen.append(torch.get_autocast_dtype("tpu"))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [torch.bfloat16]


def test_lower_precision(x):
    with torch.autocast("tpu"):
        assert torch.mm(x, x).dtype == torch.bfloat16
        assert torch.nn.functional.linear(x, x).dtype == torch.bfloat16
        assert (x @ x).dtype == torch.bfloat16
        assert torch.add(x, x).dtype == torch.float32  # in no list
        with torch.autocast("tpu", enabled=False):
            assert torch.mm(x, x).dtype == torch.float32
    with torch.autocast("tpu", dtype=torch.float16):
        assert torch.mm(x, x).dtype == torch.float16


def test_float32(x):
    half = x.to(torch.bfloat16)
    with torch.autocast("tpu"):
        assert half.exp().dtype == torch.float32
        assert half.pow(2).dtype == torch.float32


def test_softmax_q3(x):
    with torch.autocast("tpu"):
        assert torch.softmax(x.to(torch.bfloat16), -1).dtype == torch.float32
        assert x.to(torch.bfloat16).sum().dtype == torch.float32


def test_float64_is_left_alone(x):
    with torch.autocast("tpu"):
        assert torch.mm(x.double(), x.double()).dtype == torch.float64


def test_q5_autocast_to_wider_types(x, recwarn):
    for dtype in (torch.float32, torch.float64):
        with torch.autocast("tpu", dtype=dtype):
            assert torch.mm(x, x).dtype in (dtype, torch.float32)
    assert not [w for w in recwarn if "autocast" in str(w.message)]


def test_binary_cross_entropy_is_refused(x):
    with (
        torch.autocast("tpu"),
        pytest.raises(RuntimeError, match="binary_cross_entropy_with_logits"),
    ):
        torch.nn.functional.binary_cross_entropy(x, x)


def test_gradients_reach_float32_weights(x):
    w = torch.nn.Parameter(torch.randn(4, 4).to("tpu"))
    with torch.autocast("tpu"):
        y = torch.mm(x, w)
    y.backward(torch.ones(4, 4, dtype=torch.bfloat16).to("tpu"))
    assert w.grad.dtype == torch.float32


def test_custom_functions(x):
    class Twice(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="tpu", cast_inputs=torch.float32)
        def forward(ctx, a):
            assert not torch.is_autocast_enabled("tpu")
            return a + a

        @staticmethod
        @torch.amp.custom_bwd(device_type="tpu")
        def backward(ctx, g):
            return g + g

    with torch.autocast("tpu"):
        assert Twice.apply(x.to(torch.bfloat16)).dtype == torch.float32
    with torch.tpu.amp.autocast():
        assert torch.mm(x, x).dtype == torch.bfloat16


def test_grad_scaler_q2():
    """Scale, skip a step with an infinity, grow: as on CUDA."""
    w = torch.nn.Parameter(torch.ones(4).to("tpu"))
    optimizer = torch.optim.SGD([w], lr=0.5)
    scaler = torch.amp.GradScaler("tpu", init_scale=4.0, growth_interval=1)
    x = torch.arange(4.0).to("tpu")
    scaler.scale((w * x).sum()).backward()
    assert w.grad.tolist() == [0.0, 4.0, 8.0, 12.0]
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [1.0, 0.5, 0.0, -0.5] and scaler.get_scale() == 8.0
    optimizer.zero_grad()
    scaler.scale((w * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [1.0, 0.5, 0.0, -0.5], "a step with an infinity is skipped"
    assert scaler.get_scale() == 4.0
    optimizer.zero_grad()
    scaler.scale((w * x).sum()).backward()
    scaler.unscale_(optimizer)
    assert w.grad.tolist() == [0.0, 1.0, 2.0, 3.0]
    scaler.load_state_dict(scaler.state_dict())


def test_q4_custom_functions_ask_torch_which_device_there_is():
    """A library that says "cuda" there gets no casts; asked of torch.accelerator, it works."""
    kind = torch.accelerator.current_accelerator().type
    assert kind == "tpu"
    seen = []

    class Double(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type=kind, cast_inputs=torch.float32)
        def forward(ctx, t):
            seen.append((t.dtype, torch.is_autocast_enabled(kind)))
            return t * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type=kind)
        def backward(ctx, grad):
            seen.append((grad.dtype, torch.is_autocast_enabled(kind)))
            return grad * 2

    x = torch.ones(3, dtype=torch.bfloat16, device="tpu", requires_grad=True)
    with torch.autocast("tpu"):
        Double.apply(x).sum().backward()
    assert seen == [(torch.float32, False), (torch.float32, False)]
    assert x.grad.tolist() == [2, 2, 2]
