"""Views by dtype and of complex numbers: one storage, read and written through both."""

import torch
from oracle import check


def test_complex_views():
    z = torch.tensor([[1 + 2j, 3 - 1j], [0 + 1j, -2 + 0.5j]])
    check(lambda t: t.real, z)
    check(lambda t: t.imag, z)
    check(lambda t: torch.view_as_real(t), z)
    check(lambda t: torch.view_as_complex(t), torch.arange(8.0).view(2, 2, 2))
    check(lambda t: t.imag.mul_(2), z)
    check(lambda t: t.real.add_(1), z.t())
    check(lambda t: torch.view_as_real(t)[0].mul_(3), z)
    check(lambda t: torch.view_as_complex(t).mul_(2j), torch.arange(8.0).view(2, 2, 2))
    check(lambda t: t.conj().imag, z)
    check(lambda t: t.real * 2, z, grad=True)


def test_lazy_conj_and_neg():
    z = torch.tensor([1 + 2j, 3 - 1j])
    check(lambda t: t.conj() + 1, z)
    check(lambda t: t.conj().clone(), z)
    check(lambda t: torch._neg_view(t) * 2, z)
    check(lambda t, u: t.copy_(u.conj()), torch.zeros(2, dtype=torch.complex64), z)
    check(lambda t: t.conj().mul_(2), z)
    check(lambda t: t.conj_physical_(), z)
    device = z.to("tpu")
    assert device.conj().is_conj() and device.conj().cpu().resolve_conj().tolist() == [
        1 - 2j,
        3 + 1j,
    ]
    assert torch._neg_view(torch.ones(2).to("tpu")).cpu().tolist() == [-1.0, -1.0]
    host = torch.zeros(2, dtype=torch.complex64)
    host.copy_(device.conj())
    assert host.tolist() == [1 - 2j, 3 + 1j]


def test_dtype_views():
    x = torch.arange(4.0)
    for dtype in (
        torch.int32,
        torch.int16,
        torch.uint8,
        torch.float64,
        torch.int64,
        torch.bfloat16,
    ):
        check(lambda t, dtype=dtype: t.view(dtype), x)
    check(lambda t: t.view(torch.uint8), torch.tensor([True, False, True]))
    check(lambda t: t.view(torch.int32).add_(1), x)
    check(lambda t: t.view(torch.uint8)[0:1].copy_(torch.tensor([7], dtype=torch.uint8)), x)
    check(lambda t: t.view(torch.int32), torch.arange(8.0).view(2, 4)[:, ::2])


def test_version_counters_and_bases():
    x = torch.zeros(4).to("tpu")
    y = x[1:]
    y.add_(1)
    assert y._base is x and x._version == 1
    with torch.inference_mode():
        assert (x + 1).is_inference()
