"""scaled_dot_product_attention takes the fused row where the operands fit, else the composition."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import torch_tpu

FUSED = "aten::_scaled_dot_product_fused_attention_overrideable"


@pytest.fixture(scope="module")
def has_row():
    names = {r["name"] for r in torch_tpu.ops()}
    return FUSED in names and FUSED + "_backward" in names


def choice(*args, **kwargs):
    return torch._fused_sdp_choice(*args, **kwargs)


def test_choice(has_row):
    q = torch.rand(2, 3, 4, 8).to("tpu")
    fused = int(SDPBackend.OVERRIDEABLE.value) if has_row else int(SDPBackend.MATH.value)
    math = int(SDPBackend.MATH.value)
    assert choice(q, q, q) == fused
    assert choice(q, q, q, is_causal=True) == fused
    assert choice(q, q[:, :1], q[:, :1], enable_gqa=True) == math
    assert choice(q[0], q[0], q[0]) == math
    with sdpa_kernel(SDPBackend.MATH):
        assert choice(q, q, q) == math


def test_no_backend_left():
    q = torch.rand(2, 3, 4, 8).to("tpu")
    with (
        sdpa_kernel(SDPBackend.FLASH_ATTENTION),
        pytest.raises(RuntimeError, match=r"(?i)backend|kernel"),
    ):
        torch.nn.functional.scaled_dot_product_attention(q, q, q)
