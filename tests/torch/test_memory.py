"""Memory statistics, limits and caches."""

import gc

import pytest
import torch
from fresh_process import run

import torch_tpu


def test_counts_live_bytes():
    gc.collect()
    torch.tpu.synchronize()
    before = torch.tpu.memory_allocated()
    x = torch.zeros(1024, 256).to("tpu")
    assert torch.tpu.memory_allocated() - before == x.nbytes
    torch.tpu.reset_peak_memory_stats()
    y = x + x
    torch.tpu.synchronize()
    del y
    assert torch.tpu.memory_allocated() - before == x.nbytes
    assert torch.tpu.max_memory_allocated() - before >= 2 * x.nbytes
    del x
    assert torch.tpu.memory_allocated() == before
    torch.tpu.reset_peak_memory_stats()
    assert torch.tpu.max_memory_allocated() == before


def test_empty_takes_nothing():
    before = torch.tpu.memory_allocated()
    x = torch.empty(1 << 20, device="tpu")
    assert torch.tpu.memory_allocated() == before
    assert x[:3].tolist() == [0.0, 0.0, 0.0], "memory that was never written reads as zeros"


def test_a_copy_shares_until_written():
    x = torch.zeros(1 << 16).to("tpu")
    x[:1].clone().add_(1)  # the number 1 stays on the device, 32 bytes
    before = torch.tpu.memory_allocated()
    y = x.clone()
    assert torch.tpu.memory_allocated() == before
    y.add_(1)
    torch.tpu.synchronize()
    assert torch.tpu.memory_allocated() - before == y.nbytes
    assert x[0].item() == 0 and y[0].item() == 1


def test_statistics():
    stats = torch.tpu.memory_stats()
    assert (
        stats["allocation.all.current"] >= 0 and stats["num_ooms"] >= 0 and stats["programs"] >= 0
    )
    assert torch.accelerator.memory_allocated() == torch.tpu.memory_allocated()
    assert torch.tpu.memory_reserved() == torch.tpu.memory_allocated()
    assert torch.tpu.memory_stats_as_nested_dict()["allocated_bytes"]["all"]["current"] >= 0
    assert "buffers" in torch.tpu.memory_summary()
    torch.tpu.reset_accumulated_memory_stats()
    assert torch.tpu.memory_stats()["allocated_bytes.all.freed"] == 0


def test_empty_cache_empties_programs(counters):
    x = torch.ones(3).to("tpu")
    x + x
    torch.tpu.synchronize()
    torch.tpu.empty_cache()
    assert torch_tpu.counters()["programs"] == 0 == torch.tpu.memory_stats()["programs"]
    assert (x + x).tolist() == [2.0] * 3


@pytest.fixture
def limited():
    yield
    torch.tpu.set_memory_limit(None)


def test_fraction(limited):
    total = torch.tpu.mem_get_info()[1]
    torch.tpu.set_per_process_memory_fraction(0.5)
    assert torch.tpu.mem_get_info()[1] == int(total * 0.5)
    assert abs(torch.tpu.get_per_process_memory_fraction() - 0.5) < 1e-6
    with pytest.raises(ValueError, match="Invalid fraction"):
        torch.tpu.set_per_process_memory_fraction(1.5)
    torch.tpu.set_memory_limit(None)
    assert torch.tpu.get_per_process_memory_fraction() == 1.0


def test_out_of_memory(limited):
    """The error is PyTorch's, names sizes, and the next operator works."""
    x = torch.ones(1 << 18).to("tpu")
    (x + x).cpu()
    torch.tpu.set_memory_limit(torch.tpu.memory_allocated() + (1 << 19))
    ooms = torch.tpu.memory_stats()["num_ooms"]
    with pytest.raises(torch.OutOfMemoryError, match=r"(?i)memory"):
        y = x + x
        y.cpu()
    with pytest.raises(torch.OutOfMemoryError):
        torch.ones(1 << 18).to("tpu")
    assert torch.tpu.memory_stats()["num_ooms"] > ooms
    assert torch.equal(x.cpu(), torch.ones(1 << 18))
    small = torch.ones(4).to("tpu")
    assert (small + small).tolist() == [2.0] * 4


def test_out_of_memory_in_place(limited):
    """The target of an in-place operator that runs out of memory keeps its contents."""
    x = torch.ones(1 << 18).to("tpu")
    view = x.view(2, -1).t()
    other = torch.ones(1 << 17, 2).to("tpu")
    torch.tpu.set_memory_limit(torch.tpu.memory_allocated() + 1024)
    holder = x.clone()  # shares x's memory, so a write to x needs memory of its own
    try:
        view.add_(other)
        torch.tpu.synchronize()
    except torch.OutOfMemoryError:
        pass
    torch.tpu.set_memory_limit(None)
    assert torch.equal(holder.cpu(), torch.ones(1 << 18))
    assert float(x.cpu().sum()) in (float(1 << 18), float(2 << 18))
    assert (x + 1).cpu().shape == x.shape


@pytest.mark.parametrize("mode", ["strict", "fuse"])
def test_the_limit_counts_what_waits_for_a_compile(mode):
    """Calls behind the first compile of a process are queued: their results count all the same."""
    done = run(
        f"""
        torch.tpu.set_memory_limit(10 << 20)
        torch_tpu.set_eager_mode("{mode}")
        x = torch.ones(1 << 18).to("tpu")
        keep = []
        try:
            for i in range(100):
                keep.append(x * i)
                if i % 20 == 19:
                    torch.tpu.synchronize()
        except torch.OutOfMemoryError as error:
            print("raised", "out of memory" in str(error))
        keep.clear()
        torch.tpu.synchronize()
        print(torch.tpu.max_memory_allocated() <= 10 << 20, (x + 1)[0].item())
        """,
        TORCH_TPU_CACHE="off",
    )
    assert done.stdout.splitlines() == ["raised True", "True 2.0"], done.stdout + done.stderr
