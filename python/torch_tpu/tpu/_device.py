"""Devices of torch.tpu: which there are, which is current, what they can do."""

import re
from dataclasses import dataclass
from typing import Any

import torch

from torch_tpu import _C


def _index(device: Any) -> int:
    """The index that `device` names: an int, a string, a torch.device, or None for the current
    one."""
    if device is None:
        return _C.current_device()
    if isinstance(device, int):
        return _C.current_device() if device < 0 else device
    device = torch.device(device)
    if device.type != "tpu":
        raise ValueError(f"expected a tpu device, but got {device}")
    return _C.current_device() if device.index is None else device.index


def is_available() -> bool:
    """True if a tpu device can be used. Starts nothing."""
    return _C.device_count() > 0


def device_count() -> int:
    """The number of tpu devices. Starts nothing."""
    return _C.device_count()


def init() -> None:
    """Starts the devices, which the first tensor on one does too."""
    _C.start()


def is_initialized() -> bool:
    """True once a device was used in this process."""
    return _C.is_started() and not _C.in_forked_child()


def current_device() -> int:
    """The index of this thread's current device."""
    return _C.current_device()


def set_device(device: Any) -> None:
    """Makes `device` (an index, a string or a torch.device) this thread's current one. Legal before
    anything has started; raises RuntimeError for an index that doesn't exist."""
    if isinstance(device, int) and device < 0:
        return
    _C.set_device(_index(device))


def exchange_device(device: int) -> int:
    """Makes `device` current; gives the one that was. A negative index changes nothing."""
    old = _C.current_device()
    if device >= 0 and device != old:
        _C.set_device(device)
    return old


def maybe_exchange_device(device: int) -> int:
    """As exchange_device: changing the device starts nothing here."""
    return exchange_device(device)


class device:  # noqa: N801 (torch.cuda's name)
    """Context manager that makes `device` current inside. None and negative indices change
    nothing."""

    def __init__(self, device: Any) -> None:
        self.idx = (
            -1 if device is None or (isinstance(device, int) and device < 0) else _index(device)
        )
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = exchange_device(self.idx)

    def __exit__(self, *_: Any) -> None:
        exchange_device(self.prev_idx)


class device_of(device):  # noqa: N801
    """Context manager that makes the device of a tensor or storage current; nothing for others."""

    def __init__(self, obj: Any) -> None:
        at = getattr(obj, "device", None)
        super().__init__(at if at is not None and at.type == "tpu" else None)


def synchronize(device: Any = None) -> None:
    """Waits until all work given to `device` is done, then raises what went wrong in it: an index
    out of range (IndexError), out of memory (torch.OutOfMemoryError), a failed program
    (RuntimeError)."""
    _C.synchronize(_index(device))


@dataclass(frozen=True)
class TpuDeviceProperties:
    """What `get_device_properties` gives. `total_memory` is in bytes."""

    index: int
    name: str
    platform: str
    total_memory: int
    is_tpu: bool
    native_64bit: bool


def get_device_properties(device: Any = None) -> TpuDeviceProperties:
    """Name, platform, memory of a device. Starts the devices."""
    return TpuDeviceProperties(**_C.device_properties(_index(device)))


def get_device_name(device: Any = None) -> str:
    """The device's kind as its plugin names it: "TPU v5 lite", "cpu"."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The TPU's generation as (major, minor): (5, 0) for "TPU v5 lite". (0, 0) for a CPU plugin."""
    found = re.search(r"v?(\d+)(?:\.(\d+))?", get_device_name(device)) if _is_tpu(device) else None
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def _is_tpu(device: Any) -> bool:
    return get_device_properties(device).is_tpu


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """True: devices of one process copy to each other."""
    return 0 <= _index(device) < device_count() and 0 <= _index(peer_device) < device_count()
