"""torch.tpu: the device module, with the names of torch.cuda.

Questions of availability, count and memory start nothing; the first tensor on "tpu" does.
"""

from typing import Any

import torch

from torch_tpu import _C
from torch_tpu.modes import EagerMode, eager_mode, get_eager_mode, set_eager_mode
from torch_tpu.tpu import amp, memory, random, streams
from torch_tpu.tpu._device import (
    TpuDeviceProperties,
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    exchange_device,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_initialized,
    maybe_exchange_device,
    set_device,
    synchronize,
)
from torch_tpu.tpu.memory import (
    empty_cache,
    get_per_process_memory_fraction,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_peak_memory_stats,
    set_memory_limit,
    set_per_process_memory_fraction,
)
from torch_tpu.tpu.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from torch_tpu.tpu.streams import (
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)

__all__ = [
    "EagerMode",
    "Event",
    "Stream",
    "StreamContext",
    "TpuDeviceProperties",
    "amp",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "eager_mode",
    "empty_cache",
    "exchange_device",
    "get_amp_supported_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_eager_mode",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "maybe_exchange_device",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "random",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_eager_mode",
    "set_memory_limit",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "streams",
    "synchronize",
]


def _lazy_init() -> None:
    """PyTorch calls this before its first use of the device, which may be as little as a question
    for the current index. Starting is left to the first allocation, so that such questions stay
    free."""
    if _C.in_forked_child():
        _C.start()  # raises, and says to use spawn


def _is_in_bad_fork() -> bool:
    return _C.in_forked_child()


def _is_compiled() -> bool:
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The types that `torch.autocast("tpu", dtype=...)` takes."""
    return [torch.bfloat16, torch.float16, torch.float32, torch.float64]


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """True: every operator takes bfloat16, and TPUs multiply it natively."""
    return True


def _get_device(device: Any) -> torch.device:
    if isinstance(device, int):
        return torch.device("tpu", device)
    return torch.device(device)


def _get_generator(device: torch.device) -> torch.Generator:
    return random._generator(device)


def _get_rng_state_offset(device: Any = "tpu") -> int:
    return random._generator(device).get_offset()


def _set_rng_state_offset(offset: int, device: Any = "tpu") -> None:
    random._generator(device).set_offset(offset)


def __getattr__(name: str) -> Any:
    # torch.utils.checkpoint saves the device's random state only where this is true.
    if name == "_initialized":
        return is_initialized()
    if name == "default_generators":
        return tuple(_C.default_generator(i) for i in range(device_count()))
    raise AttributeError(f"module 'torch.tpu' has no attribute '{name}'")
