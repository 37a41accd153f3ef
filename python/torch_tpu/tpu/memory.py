"""Memory of torch.tpu: counts of live buffers as the device stores them, limits, caches.

Sizes are in bytes. What is reserved is what is allocated: there is no pool of free blocks.
"""

from typing import Any

import torch

from torch_tpu import _C
from torch_tpu.tpu._device import _index, is_initialized


def empty_cache() -> None:
    """Drops compiled programs and packed scalars from memory. Programs on disk stay."""
    _C.empty_cache()


def memory_stats(device: Any = None) -> dict[str, int]:
    """The statistics of torch.cuda.memory_stats, and `programs` and `program_bytes`, the number of
    compiled calls in memory and the bytes of their programs. Empty before the first use of a
    device."""
    if not is_initialized():
        return {}
    stats = dict(torch.accelerator.memory_stats(_index(device)))
    stats["programs"] = _C.counters()["programs"]
    stats["program_bytes"] = _C.counters()["program_bytes"]
    return stats


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """memory_stats as nested dictionaries."""
    return torch._C._accelerator_getDeviceStats(_index(device)) if is_initialized() else {}


def _stat(name: str, device: Any) -> int:
    return memory_stats(device).get(name, 0)


def memory_allocated(device: Any = None) -> int:
    """Bytes of live buffers."""
    return _stat("allocated_bytes.all.current", device)


def max_memory_allocated(device: Any = None) -> int:
    """The greatest memory_allocated since the start or the last reset_peak_memory_stats."""
    return _stat("allocated_bytes.all.peak", device)


def memory_reserved(device: Any = None) -> int:
    """Bytes taken from the device."""
    return _stat("reserved_bytes.all.current", device)


def max_memory_reserved(device: Any = None) -> int:
    """The greatest memory_reserved since the start or the last reset_peak_memory_stats."""
    return _stat("reserved_bytes.all.peak", device)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Starts the peaks anew."""
    if is_initialized():
        torch.accelerator.reset_peak_memory_stats(_index(device))


def reset_max_memory_allocated(device: Any = None) -> None:
    """The older name of reset_peak_memory_stats."""
    reset_peak_memory_stats(device)


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Zeroes the counts of what was ever allocated and freed."""
    if is_initialized():
        torch.accelerator.reset_accumulated_memory_stats(_index(device))


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """(free, total) bytes of the device, or of its limit if it has one. Starts the devices."""
    return torch.accelerator.get_memory_info(_index(device))


def set_memory_limit(limit: int | None, device: Any = None) -> None:
    """Bytes that live buffers may take; more raises torch.OutOfMemoryError. None: no limit."""
    if limit is not None and limit <= 0:
        raise ValueError(f"a memory limit is a positive number of bytes, or None; got {limit}")
    _C.set_memory_limit(_index(device), limit or 0)


def _total(index: int) -> int:
    """The device's memory, whatever its limit."""
    limit = _C.memory_limit(index)
    try:
        _C.set_memory_limit(index, 0)
        return _C.total_memory(index)
    finally:
        _C.set_memory_limit(index, limit)


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Limits this process to `fraction` (0 to 1) of the device's memory."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 < fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: above 0, up to 1")
    index = _index(device)
    _C.set_memory_limit(index, max(1, int(fraction * _total(index))))


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The fraction of the device's memory that this process may take."""
    index = _index(device)
    limit = _C.memory_limit(index)
    return min(1.0, limit / _total(index)) if limit else 1.0


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The statistics as a small table."""
    index = _index(device)
    stats = memory_stats(index)
    lines = [f"tpu:{index}" + " " * 18 + "current          peak     allocated         freed"]
    for name, label in (("allocated_bytes", "bytes"), ("allocation", "buffers")):
        row = [stats.get(f"{name}.all.{k}", 0) for k in ("current", "peak", "allocated", "freed")]
        lines.append(f"{label:<16}" + "".join(f"{v:>14,}" for v in row))
    if not abbreviated:
        lines.append(f"out of memory: {stats.get('num_ooms', 0)} times")
        lines.append(f"programs in memory: {stats.get('programs', 0)}")
    return "\n".join(lines)
