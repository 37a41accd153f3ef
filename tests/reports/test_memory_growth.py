"""Reports of section S: memory."""

import gc

import pytest
import torch

import torch_tpu


def resident() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096


def test_s1_the_message_names_sizes():
    x = torch.ones(1 << 18).to("tpu")
    torch.tpu.set_memory_limit(torch.tpu.memory_allocated() + 1000)
    try:
        with pytest.raises(torch.OutOfMemoryError) as error:
            (x + x).cpu()
    finally:
        torch.tpu.set_memory_limit(None)
    text = str(error.value)
    assert "1048576" in text or "1.0" in text, text
    assert "add" in text


def test_s2_s5_flat_after_warm_up():
    w = torch.nn.Parameter(torch.ones(64, 64).to("tpu"))

    def step():
        (w * w).backward(torch.ones(64, 64).to("tpu"))
        with torch.no_grad():
            w.add_(w.grad, alpha=-0.001)
        w.grad = None

    for _ in range(20):
        step()
    torch.tpu.synchronize()
    gc.collect()
    device, host = torch.tpu.memory_allocated(), resident()
    for _ in range(300):
        step()
    torch.tpu.synchronize()
    # Fuse mode's pieces bring other run-time words than the first turns'.
    slack = 0 if torch_tpu.get_eager_mode() == "strict" else 4096
    assert torch.tpu.memory_allocated() <= device + slack
    assert resident() - host < 8 << 20


def test_s3_uploads_leave_nothing_on_the_host():
    block = torch.zeros(1 << 20)
    for _ in range(5):  # the host's allocator learns what to keep
        block.to("tpu")
    before = resident()
    for _ in range(20):
        block.to("tpu")
    assert resident() - before < 3 * block.nbytes
