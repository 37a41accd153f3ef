"""Operands of a type that an operator has no meaning for: raised, and the process lives. All of
op_db: tools/conformance.py --checks odd."""

import pytest
import torch
import torch.nn.functional as F

IMAGE, GRID = (1, 2, 4, 4), (1, 3, 3, 2)
CALLS = {
    "mode": lambda x: torch.mode(x.flatten()),
    "sort": lambda x: torch.sort(x.flatten()),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "adaptive_max_pool1d": lambda x: F.adaptive_max_pool1d(x[0], 2),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 2),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "bicubic": lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"),
    "trilinear": lambda x: F.interpolate(x[None], scale_factor=2, mode="trilinear"),
    "antialias": lambda x: F.interpolate(x, 2, mode="bilinear", antialias=True),
    "grid_sample": lambda x: F.grid_sample(x, torch.zeros(GRID, dtype=x.dtype, device=x.device)),
}


@pytest.mark.parametrize("name", CALLS)
def test_complex_operands_raise(name):
    x = torch.ones(IMAGE, dtype=torch.complex64).to("tpu")
    with pytest.raises(NotImplementedError, match="not implemented for complex64"):
        CALLS[name](x)
    assert (x + 1)[0, 0, 0, 0].item() == 2


def test_bool_operands_raise():
    x = torch.ones(IMAGE, dtype=torch.bool).to("tpu")
    for call in (lambda: F.adaptive_avg_pool2d(x, 2), lambda: torch.linalg.eigvalsh(x)):
        with pytest.raises(NotImplementedError, match="not implemented for bool"):
            call()
