"""DLPack: exchange in the process, and export to the host by a copy."""

import numpy as np
import pytest
import torch
from torch.utils.dlpack import DLDeviceType, from_dlpack, to_dlpack


def test_device():
    x = torch.arange(3.0).to("tpu")
    assert x.__dlpack_device__() == (DLDeviceType.kDLExtDev, 0)
    assert torch.ones(1).__dlpack_device__() == (DLDeviceType.kDLCPU, 0)


def test_round_trip_shares():
    x = torch.arange(6.0).to("tpu").view(2, 3).t()
    for y in (torch.from_dlpack(x), from_dlpack(to_dlpack(x))):
        assert y.is_tpu and y.stride() == x.stride() and y.data_ptr() == x.data_ptr()
        y.add_(1)
    assert x.tolist() == [[2.0, 5.0], [3.0, 6.0], [4.0, 7.0]]


def test_outlives_its_source():
    y = torch.from_dlpack(torch.arange(3.0).to("tpu"))
    assert (y + 1).tolist() == [1.0, 2.0, 3.0]


def test_to_the_host():
    x = torch.arange(3.0).to("tpu")
    assert np.from_dlpack(x, device="cpu").tolist() == [0.0, 1.0, 2.0]
    y = torch.from_dlpack(x, device="cpu")
    assert y.device.type == "cpu" and y.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(BufferError, match="copy"):
        x.__dlpack__(dl_device=(DLDeviceType.kDLCPU, 0), copy=False)
    with pytest.raises(BufferError, match="gradient"):
        x.requires_grad_().__dlpack__(dl_device=(DLDeviceType.kDLCPU, 0))


def test_from_numpy():
    assert torch.from_dlpack(np.arange(3)).to("tpu").tolist() == [0, 1, 2]
