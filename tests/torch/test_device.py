"""torch.tpu's devices, and torch.accelerator on top of them."""

import fresh_process
import pytest
import torch

import torch_tpu


def test_questions_start_nothing():
    out = fresh_process.run("""
        assert torch.tpu.is_available() and torch.accelerator.is_available()
        assert torch.tpu.device_count() == torch.accelerator.device_count() == 1
        assert torch.tpu.memory_allocated() == 0 and torch.tpu.memory_stats() == {}
        assert torch.accelerator.memory_stats() == {}
        assert torch.tpu.current_device() == torch.accelerator.current_device_index() == 0
        torch.manual_seed(1); torch.tpu.get_rng_state()
        assert not torch.tpu.is_initialized() and not torch.tpu._initialized
        torch.zeros(1).to("tpu")
        assert torch.tpu.is_initialized() and torch.tpu._initialized
        import torch.tpu.memory, torch.tpu.random
        assert torch.tpu.memory is torch_tpu.tpu.memory
    """)
    assert out.stderr.count("torch_tpu:") == 1, "one line says which plugin runs"


def test_current_device():
    assert torch.tpu.current_device() == 0
    torch.tpu.set_device(0)
    torch.tpu.set_device("tpu")
    torch.tpu.set_device(torch.device("tpu:0"))
    with torch.tpu.device(0), torch.tpu.device(None), torch.tpu.device("tpu"):
        assert torch.tpu.current_device() == 0
    with torch.tpu.device_of(torch.ones(1)), torch.tpu.device_of(torch.ones(1).to("tpu")):
        assert torch.tpu.current_device() == 0
    with pytest.raises(RuntimeError, match="tpu:7 does not exist"):
        torch.tpu.set_device(7)
    with pytest.raises(ValueError, match="expected a tpu device"):
        torch.tpu.set_device("cpu")
    with pytest.raises(RuntimeError, match="tpu:3 does not exist"):
        torch.ones(1).to("tpu:3")


def test_accelerator():
    assert torch.accelerator.current_accelerator() == torch.device("tpu")
    assert torch._C._get_accelerator() == torch.device("tpu")
    assert torch.accelerator.current_device_index() == 0
    torch.accelerator.set_device_index(0)
    torch.accelerator.set_device_index(torch.device("tpu:0"))
    with torch.accelerator.device_index(0):
        pass
    torch.accelerator.synchronize()
    stream = torch.accelerator.current_stream()
    assert stream.device == torch.device("tpu:0")
    torch.accelerator.set_stream(stream)
    supported = torch.accelerator.get_device_capability()["supported_dtypes"]
    assert {torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64} <= set(
        supported
    )
    free, total = torch.accelerator.get_memory_info()
    assert 0 < free <= total
    torch.accelerator.empty_cache()
    torch.accelerator.empty_host_cache()


def test_properties():
    properties = torch.tpu.get_device_properties()
    assert properties.index == 0 and properties.total_memory > 0
    assert torch.tpu.get_device_name(0) == properties.name
    assert len(torch.tpu.get_device_capability()) == 2
    assert torch.tpu.is_bf16_supported()
    assert torch.bfloat16 in torch.tpu.get_amp_supported_dtype()
    assert torch.tpu.can_device_access_peer(0, 0)


def test_names_of_torch_cuda():
    """What libraries ask of a device module by the names of torch.cuda."""
    names = [
        "is_available",
        "is_initialized",
        "device_count",
        "current_device",
        "set_device",
        "device",
        "device_of",
        "synchronize",
        "Stream",
        "Event",
        "stream",
        "set_stream",
        "current_stream",
        "default_stream",
        "manual_seed",
        "manual_seed_all",
        "seed",
        "seed_all",
        "initial_seed",
        "get_rng_state",
        "set_rng_state",
        "get_rng_state_all",
        "set_rng_state_all",
        "default_generators",
        "memory_allocated",
        "max_memory_allocated",
        "memory_reserved",
        "max_memory_reserved",
        "memory_stats",
        "memory_summary",
        "mem_get_info",
        "reset_peak_memory_stats",
        "reset_accumulated_memory_stats",
        "empty_cache",
        "get_device_properties",
        "get_device_name",
        "get_device_capability",
        "is_bf16_supported",
        "set_per_process_memory_fraction",
        "random",
        "memory",
        "amp",
        "init",
        "_lazy_init",
        "_is_in_bad_fork",
        "get_amp_supported_dtype",
    ]
    assert [n for n in names if not hasattr(torch.tpu, n)] == []
    assert not hasattr(torch.tpu, "ipc_collect"), "no memory is shared between processes"


def test_methods():
    t = torch.ones(2).tpu()
    assert t.is_tpu and not torch.ones(2).is_tpu
    assert torch.nn.Linear(1, 1).tpu().weight.is_tpu
    from torch.utils import _pallas

    assert _pallas.has_torch_tpu()
    assert torch.get_device_module("tpu") is torch.tpu
    assert torch.device("tpu").type == "tpu"


def test_default_device():
    torch.set_default_device("tpu")
    try:
        assert torch.empty(2).device == torch.device("tpu:0")
        assert torch.tensor([1, 2]).is_tpu
        assert torch.nn.Parameter(torch.empty(2)).is_tpu
    finally:
        torch.set_default_device(None)
    with torch.device("tpu"):
        assert torch.empty(1).is_tpu


def test_deterministic_algorithms():
    torch.use_deterministic_algorithms(True)
    try:
        x = torch.arange(6.0).to("tpu")
        assert torch.equal((x + x).cpu(), torch.arange(6.0) * 2)
        assert torch.empty(3, device="tpu").shape == (3,)
    finally:
        torch.use_deterministic_algorithms(False)


def test_device_mix():
    a, b = torch.ones(2).to("tpu"), torch.ones(2)
    with pytest.raises(RuntimeError, match="same device.*tpu:0.*cpu"):
        torch.add(a, b)
    with pytest.raises(RuntimeError, match="same device"):
        torch.add(b, a)
    with pytest.raises(RuntimeError, match="same device"):
        torch.equal(a, b)
    assert torch.equal((a + torch.tensor(2.0)).cpu(), torch.tensor([3.0, 3.0]))  # 0-dim CPU: legal


def test_info():
    info = torch_tpu.info()
    assert info["devices"] == 1 and info["plugin"].endswith(".so")
    text = str(info)
    for word in ("plugin", "device", "TORCH_TPU_FALLBACK", "float32 matmul precision", "torch"):
        assert word in text
    assert {"compiles", "disk_hits", "memory_hits", "launches", "fallbacks", "host_reads"} <= set(
        torch_tpu.counters()
    )
    row = next(r for r in torch_tpu.ops() if r["name"] == "aten::add.Tensor")
    assert row["status"] == "done" and "aten::add_.Tensor" in row["overloads"]
