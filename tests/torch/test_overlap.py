"""Writes to memory that the call reads or that several elements share: refused where PyTorch's CPU
refuses them, with its text, and right where it allows them. Offsets are run-time numbers: a call
that was fine must not let a like one with other offsets through."""

import pytest
import torch

SHARED = "some elements of the input tensor and the written-to tensor refer to a single memory"
REPEATED = "more than one element of the written-to tensor refers to a single memory location"
INDEX = torch.tensor([1, 2, 3])

PARTIAL = {
    "add_": lambda b: b[1:].add_(b[:-1]),
    "copy_": lambda b: b[1:].copy_(b[:-1]),
    "setitem": lambda b: b.__setitem__(slice(1, None), b[:-1]),
    "own element": lambda b: b.mul_(b[2]),
    "transposed": lambda b: b.view(4, 4).add_(b.view(4, 4).t()),
    "transposed copy": lambda b: b.view(4, 4).copy_(b.view(4, 4).t()),
    "other type": lambda b: b[2:].view(torch.int32).add_(b[:-2].view(torch.int32)),
    "foreach": lambda b: torch._foreach_add_([b[1:]], [b[:-1]]),
    "out": lambda b: torch.exp(b[:-1], out=b[1:]),
    "cat": lambda b: torch.cat([b[:8], b[8:]], out=b),
    "cumsum": lambda b: torch.cumsum(b[1:], 0, out=b[:-1]),
    "sort": lambda b: torch.sort(
        b[1:], out=(b[:-1], torch.empty(15, dtype=torch.int64, device=b.device))
    ),
    "index_select": lambda b: torch.index_select(b, 0, INDEX.to(b.device), out=b[:3]),
    "gather": lambda b: torch.gather(b, 0, INDEX.to(b.device), out=b[:3]),
    "take": lambda b: torch.take(b, INDEX.to(b.device), out=b[:3]),
    "index_add_": lambda b: b.index_add_(0, INDEX.to(b.device), b[:3]),
    "index_put_": lambda b: b.index_put_((INDEX.to(b.device),), b[:3]),
    "scatter_": lambda b: b.scatter_(0, INDEX.to(b.device), b[:3]),
    "put_": lambda b: b.put_(INDEX.to(b.device), b[:3]),
}


@pytest.mark.parametrize("name", PARTIAL)
def test_what_the_call_reads_is_not_written_elsewhere(name):
    for device in ("cpu", "tpu"):
        b = torch.arange(16.0, device=device)
        with pytest.raises(RuntimeError, match=SHARED):
            PARTIAL[name](b)
        assert torch.equal(b.cpu(), torch.arange(16.0)), "nothing was written"


def test_a_known_program_checks_again(counters):
    b = torch.arange(16.0, device="tpu")
    b[8:12].add_(b[:4])
    counters.reset()
    with pytest.raises(RuntimeError, match=SHARED):
        b[3:7].add_(b[:4])
    b[4:8].add_(b[:4])
    assert counters.compiles == 0
    assert b.tolist() == [0, 1, 2, 3, 4, 6, 8, 10, 8, 10, 12, 14, 12, 13, 14, 15]


def test_the_same_view_and_what_is_too_hard_to_say():
    for device in ("cpu", "tpu"):
        b = torch.arange(8.0, device=device)
        b.add_(b)
        torch.mul(b, b, out=b)
        b[2:].sub_(b[2:])
        b[::2].add_(b[1::2])
        assert b.tolist() == [4, 4, 0, 0, 0, 0, 0, 0]


def test_what_cpu_kernels_do_not_look_at_is_computed_first():
    b = torch.arange(16.0).view(4, 4)
    t = b.to("tpu")
    assert torch.equal(torch.mm(t, t, out=t).cpu(), b @ b)
    t = b.to("tpu")
    torch.sum(t, 0, out=t[0])
    assert torch.equal(t.cpu()[0], b.sum(0))


WRITES = {
    "add_": lambda x: x.add_(1),
    "copy_": lambda x: x.copy_(torch.ones(4, 3, device=x.device)),
    "copy_ of host": lambda x: x.copy_(torch.ones(4, 3)),
    "setitem": lambda x: x.__setitem__(slice(None), 5),
    "fill_ by tensor": lambda x: x.fill_(torch.tensor(3.0, device=x.device)),
    "uniform_": lambda x: x.uniform_(),
    "out": lambda x: torch.exp(torch.ones(4, 3, device=x.device), out=x),
}


@pytest.mark.parametrize("name", WRITES)
def test_elements_at_one_place_are_not_written(name):
    for device in ("cpu", "tpu"):
        with pytest.raises(RuntimeError, match=REPEATED):
            WRITES[name](torch.zeros(3, device=device).expand(4, 3))


@pytest.mark.parametrize("size", [3, 1 << 15], ids=["small", "large"])
def test_fills_of_expanded_tensors(size):
    for device in ("cpu", "tpu"):
        base = torch.zeros(2 * size, device=device)
        x = base[size:].expand(4, size)
        assert x.fill_(3) is x
        assert x.shape == (4, size)
        assert base.sum().item() == 3 * size
        x[0] = 5
        assert base[-1].item() == 5
        x.zero_()
        assert base.any().item() is False
