"""The one fallback to the CPU: warns once by name, counts, and can be an error. An operator that no
row will ever serve stands for all that have none."""

import warnings

import pytest
import torch

import torch_tpu


@pytest.fixture
def mode():
    def set_mode(value):
        torch_tpu._C.set_flag("fallback", value)

    yield set_mode
    set_mode("error")


@pytest.fixture
def rare():
    """An operator without a row: taken from the table, so that this test outlives new rows."""
    names = {r["name"] for r in torch_tpu.ops()}
    for name, call in (("aten::_add_relu.Tensor", lambda x: torch._add_relu(x, x)),):
        if name not in names:
            return name, call
    pytest.skip("every candidate has a row now")


def test_modes(mode, rare, counters):
    name, call = rare
    x = torch.eye(3).add(1).to("tpu")
    mode("error")
    with pytest.raises(NotImplementedError, match=f"{name}.*TORCH_TPU_FALLBACK=error"):
        call(x)
    mode("warn")
    with pytest.warns(UserWarning, match=name):
        y = call(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(x)  # the second time it is silent
    flat = torch.utils._pytree.tree_flatten(y)[0]
    assert all(t.is_tpu for t in flat)
    assert counters.fallbacks == 2 and counters["fallback." + name] == 2
    mode("silent")
    call(x)
    assert counters.fallbacks == 3
