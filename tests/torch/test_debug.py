"""Debug mode and the NaN trap: what they find, and what they say of it."""

import pytest
import torch

import torch_tpu


@pytest.fixture
def debug():
    with torch_tpu.eager_mode("debug"):
        yield


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda e: e + 1, "self"),
        (lambda e: torch.ones(3, device="tpu") * e, "other"),
        (lambda e: e.sum(), "self"),
        (lambda e: e[1:].exp(), "self"),
        (lambda e: e.mul_(2), "self"),
        (lambda e: torch.cat([torch.ones(3, device="tpu"), e]), "tensors"),
    ],
)
def test_reads_of_memory_never_written(debug, call, argument):
    empty = torch.empty(3, device="tpu")
    with pytest.raises(RuntimeError, match=f"'{argument}' is memory that nothing has written") as e:
        call(empty)
    assert "test_debug.py" in str(e.value)


def test_what_writes_or_only_copies_memory_may_meet_it_unwritten(debug):
    e = torch.empty(4, device="tpu")
    e[1:3] = 5.0
    assert e[1:3].tolist() == [5, 5]
    torch.empty(4, device="tpu").normal_()
    torch.nn.init.xavier_uniform_(torch.empty(3, 3, device="tpu"))
    torch.empty(4, device="tpu").clone()
    torch.empty(4, device="tpu").copy_(e)
    torch.add(e, 1, out=torch.empty(4, device="tpu"))
    assert torch.empty(0, device="tpu").sum().item() == 0
    with torch_tpu.eager_mode("strict"):
        torch.empty(4, device="tpu") + 1  # only debug mode minds


def test_bad_indices_raise_at_their_line(debug):
    x = torch.arange(3.0).to("tpu")
    with pytest.raises(IndexError, match="index 7 is out of bounds") as e:
        x[torch.tensor([0, 7]).to("tpu")]
    assert "test_debug.py" in str(e.value)


@pytest.mark.parametrize("mode", ["strict", "debug", "fuse"])
def test_the_trap_names_the_first_nan(mode):
    x = torch.tensor([1.0, -1.0, 4.0]).to("tpu")
    with torch_tpu.eager_mode(mode), torch_tpu.debug.trap_nan():
        y = x * 2
        with pytest.raises(FloatingPointError, match=r"log.default: result 0 is nan at \[1\]") as e:
            y.log()
    assert "float32[3]" in str(e.value)
    assert "test_debug.py" in str(e.value)


def test_the_trap_in_backward_and_in_place():
    x = torch.tensor([0.0, 1.0]).to("tpu").requires_grad_()
    with torch_tpu.debug.trap_nan(inf=True):
        y = x.sqrt().sum()
        with pytest.raises(FloatingPointError, match="div.Tensor.*is inf"):
            y.backward()
    z = torch.tensor([-1.0]).to("tpu")
    with torch_tpu.debug.trap_nan(), pytest.raises(FloatingPointError, match="sqrt_.default"):
        z.sqrt_()


def test_what_came_in_is_not_the_operators_fault():
    x = torch.tensor([float("nan"), 1.0]).to("tpu")
    with torch_tpu.debug.trap_nan(inf=True):
        y = x + 1
        y.masked_fill(y > 1, float("-inf")).softmax(0)
    with torch_tpu.debug.trap_nan():
        torch.ones(2, device="tpu") / 0  # inf is no NaN
