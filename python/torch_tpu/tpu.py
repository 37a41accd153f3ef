"""torch.tpu: the device module, with the names of torch.cuda."""

import torch

from torch_tpu import _C


def is_available() -> bool:
    """True if a tpu device can be used. Starts nothing."""
    return _C.device_count() > 0


def is_initialized() -> bool:
    """True once a device was used in this process."""
    return _C.is_started() and not _C.in_forked_child()


def _lazy_init() -> None:
    _C.start()


def _is_in_bad_fork() -> bool:
    return _C.in_forked_child()


def device_count() -> int:
    """The number of tpu devices. Starts nothing."""
    return _C.device_count()


def current_device() -> int:
    """The index of this thread's current device."""
    return _C.current_device()


def set_device(device) -> None:
    """Makes `device` (an index, a string or a torch.device) this thread's current one."""
    index = device if isinstance(device, int) else torch.device(device).index
    if index is not None and index >= 0:
        _C.set_device(index)


def synchronize(device=None) -> None:
    """Waits until everything queued on `device` is done; raises what went wrong meanwhile."""
    index = -1 if device is None else (device if isinstance(device, int) else torch.device(device).index)
    _C.synchronize(-1 if index is None else index)


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all devices."""
    for i in range(max(device_count(), 1)):
    
        _default_generator(i).manual_seed(seed)


def _default_generator(i: int) -> torch.Generator:
    return torch._C._get_default_generator(torch.device("tpu", i)) if hasattr(torch._C, "_get_default_generator") else torch.Generator(device=f"tpu:{i}")
