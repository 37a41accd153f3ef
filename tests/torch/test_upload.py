"""The source of an upload may change at once; so may the host's copy of a read. Reports C14-C17."""

import torch


def test_source_changes_after_the_call():
    for non_blocking in (False, True):
        a = torch.arange(100_000.0)
        b = a.to("tpu", non_blocking=non_blocking)
        c = b + 0
        a.fill_(-1)
        assert b[5].item() == 5.0 and c[7].item() == 7.0
        d = torch.empty(100_000, device="tpu")
        a = torch.arange(100_000.0)
        d.copy_(a, non_blocking=non_blocking)
        a.fill_(-1)
        assert d[99].item() == 99.0


def test_the_device_does_not_change_the_source():
    a = torch.zeros(64)
    b = a.to("tpu")
    b.add_(1)
    assert a.tolist() == [0.0] * 64
    c = b.cpu()
    c.fill_(9)
    b.add_(1)
    assert b.tolist() == [2.0] * 64 and c.tolist() == [9.0] * 64


def test_c15_c16_freed_sources():
    parts = [torch.full((1000,), float(i)).to("tpu", non_blocking=True) for i in range(3)]
    x = torch.arange(10).to("tpu", non_blocking=True)
    assert [p[0].item() for p in parts] == [0.0, 1.0, 2.0]
    assert x.tolist() == list(range(10))


def test_c14_copy_into_a_part_of_the_host():
    host = torch.zeros(6)
    host[2:4] = torch.tensor([1.0, 2.0]).to("tpu")
    assert host.tolist() == [0.0, 0.0, 1.0, 2.0, 0.0, 0.0]
    source = torch.arange(6.0).to("tpu")
    host[::2].copy_(source[3:])
    assert host.tolist() == [3.0, 0.0, 4.0, 2.0, 5.0, 0.0]


def test_c17_unaligned():
    host = torch.zeros(4, dtype=torch.bool)
    host[1:2] = torch.tensor([True, True, False, False]).to("tpu")[1:2]
    assert host.tolist() == [False, True, False, False]


def test_layouts_and_casts():
    x = torch.arange(6.0).view(2, 3)
    for source in (x, x.t(), x[:, 1:], x[:, :1].expand(2, 3)):
        assert torch.equal(source.to("tpu").cpu(), source)
        assert torch.equal(source.to("tpu", torch.int32).cpu(), source.to(torch.int32))
        target = torch.empty(source.shape[::-1], device="tpu").t()
        target.copy_(source.double())
        assert torch.equal(target.cpu(), source)
    strided = torch.zeros(2, 6).to("tpu")
    strided[:, ::2] = x
    assert strided.tolist() == [[0.0, 0.0, 1.0, 0.0, 2.0, 0.0], [3.0, 0.0, 4.0, 0.0, 5.0, 0.0]]
    nhwc = torch.rand(2, 3, 4, 4).to(memory_format=torch.channels_last)
    assert nhwc.to("tpu").stride() == nhwc.stride()
    assert torch.equal(nhwc.to("tpu").cpu(), nhwc)
