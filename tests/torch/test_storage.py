"""Storages: resizing, sharing, set_, bytes."""

import pytest
import torch


def test_resize_to_nothing_and_back():
    """What FSDP does to free and to bring back a parameter's memory."""
    x = torch.arange(4.0).to("tpu")
    before = torch.tpu.memory_allocated()
    x.untyped_storage().resize_(0)
    assert x.untyped_storage().nbytes() == 0
    assert torch.tpu.memory_allocated() == before - 16
    x.untyped_storage().resize_(16)
    x.copy_(torch.ones(4))
    assert x.tolist() == [1.0] * 4


def test_resize_keeps_contents():
    x = torch.arange(4.0).to("tpu")
    x.untyped_storage().resize_(24)
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]
    x.resize_(6)
    assert x.tolist()[:4] == [0.0, 1.0, 2.0, 3.0]
    x.untyped_storage().resize_(8)
    assert x[:2].tolist() == [0.0, 1.0]
    y = torch.arange(6).to("tpu").resize_(2, 2)
    assert y.tolist() == [[0, 1], [2, 3]]
    z = torch.empty(0, device="tpu").resize_(2, 1, 1, 2, memory_format=torch.channels_last)
    assert z.stride() == (2, 1, 2, 1)


def test_set():
    x, y = torch.arange(4.0).to("tpu"), torch.empty(0, device="tpu")
    y.set_(x)
    assert y.is_set_to(x) and not y.is_set_to(torch.ones(4).to("tpu"))
    y.mul_(2)
    assert x.tolist() == [0.0, 2.0, 4.0, 6.0]
    y.set_(x.untyped_storage(), 1, (2,), (2,))
    assert y.tolist() == [2.0, 6.0]
    y.set_()
    assert y.numel() == 0
    with pytest.raises(RuntimeError):
        y.set_(torch.ones(2).untyped_storage())


def test_addresses():
    x, y = torch.ones(4).to("tpu"), torch.ones(4).to("tpu")
    assert x.data_ptr() != y.data_ptr() and x.data_ptr() != 0
    assert x[1:].data_ptr() == x.data_ptr() + 4
    assert x.untyped_storage().data_ptr() == x.view(2, 2).untyped_storage().data_ptr()
    assert x.untyped_storage()._cdata == x[2:].untyped_storage()._cdata


def test_bytes_and_copies():
    x = torch.arange(3, dtype=torch.int32).to("tpu")
    assert x.untyped_storage().cpu().tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]
    storage = torch.UntypedStorage(8, device="tpu")
    assert storage.device == torch.device("tpu:0") and storage.nbytes() == 8
    assert x.untyped_storage().clone().nbytes() == 12
    assert x.untyped_storage().tpu().device.type == "tpu"
    assert torch.ones(2).untyped_storage().tpu().device.type == "tpu"
    x.share_memory_()  # as on other devices: nothing to do
    assert not x.is_shared()  # but here another process gets a copy
    assert torch.ones(2).share_memory_().is_shared()


def test_data_assignment():
    """param.data = another device's tensor, which Module.to and many libraries do."""
    p = torch.nn.Parameter(torch.ones(3))
    p.data = torch.zeros(5).to("tpu")
    assert p.is_tpu and p.shape == (5,)
    p.data = torch.ones(2)
    assert p.device.type == "cpu"
    x = torch.ones(3).to("tpu")
    x.data = x.data + 1
    assert x.tolist() == [2.0] * 3
