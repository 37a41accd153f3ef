"""numpy, Python numbers and lists, printing."""

import numpy as np
import pytest
import torch
from oracle import to_tpu


def test_numpy_is_refused_with_the_way_out():
    x = torch.ones(2).to("tpu")
    with pytest.raises(TypeError, match=r"tpu.*Tensor\.cpu\(\)"):
        x.numpy()
    with pytest.raises(TypeError, match=r"Tensor\.cpu\(\)"):
        np.asarray(x)
    assert x.cpu().numpy().tolist() == [1.0, 1.0]
    assert x.numpy(force=True).tolist() == [1.0, 1.0]
    assert torch.from_numpy(np.ones(2)).to("tpu").dtype == torch.float64


def test_python_numbers(counters):
    x = torch.tensor(3).to("tpu")
    assert int(x) == 3 and float(x) == 3.0 and bool(x) and x.item() == 3
    assert [1, 2, 3, 4][x] == 4  # __index__
    assert f"{torch.tensor(0.5).to('tpu'):.2f}" == "0.50"
    assert torch.tensor([[1, 2]]).to("tpu").tolist() == [[1, 2]]
    assert torch.tensor(1 + 2j).to("tpu").item() == 1 + 2j
    assert counters.compiles == 0


@pytest.mark.parametrize(
    "value",
    [
        torch.arange(12.0).view(3, 4),
        torch.arange(4096.0).view(8, 512),
        torch.tensor([1, 2, 3]),
        torch.tensor([True, False]),
        torch.tensor(1.5),
        torch.tensor([1 + 2j, float("nan")]),
        torch.empty(0, 3),
        torch.tensor([1e10, float("inf"), -1e-5]),
        torch.ones(3, dtype=torch.bfloat16),
        torch.arange(12.0).view(3, 4).t()[1:],
    ],
    ids=lambda t: f"{t.dtype}{tuple(t.shape)}".replace("torch.", ""),
)
def test_print_a10_copies_once_and_compiles_nothing(value, counters):
    """Report A10: printing one tensor compiled 63 programs."""
    x = to_tpu(value)
    text = repr(x)
    assert counters.compiles == 0 and counters.launches == 0
    assert counters.host_reads <= 1
    expected = repr(value)
    assert "device='tpu:0'" in text
    squeeze = lambda s: "".join(s.split()).replace(",device='tpu:0'", "")  # noqa: E731
    assert squeeze(text) == squeeze(expected)


def test_print_forms():
    p = torch.nn.Parameter(torch.ones(2).to("tpu"))
    assert "Parameter containing" in repr(p) and "requires_grad=True" in repr(p)
    x = torch.ones(2).to("tpu").requires_grad_()
    assert "grad_fn=<MulBackward0>" in repr(x * 2)
    assert str(x.detach()) == f"{x.detach()}"
    c = torch.tensor([1 + 2j]).to("tpu").conj()
    assert "1.-2.j" in repr(c)
    assert "LayerNorm" in repr(torch.nn.LayerNorm(2).to("tpu"))
