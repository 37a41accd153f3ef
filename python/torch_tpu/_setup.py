"""Registration with PyTorch, in the order that works: name, device module, methods, patches."""

import atexit
import os
import sys

import torch

from torch_tpu import _C, _patches, modes, tpu


def _search_dirs() -> list[str]:
    """Folders where plugin packages may be installed."""
    return [p for p in sys.path if p and os.path.isdir(p)]


def _check_alone() -> None:
    """PyTorch has one place for a backend of another package."""
    name = torch._C._get_privateuse1_backend_name()
    if name not in ("privateuseone", "tpu") or (name == "tpu" and hasattr(torch, "tpu")):
        raise ImportError(
            f"torch_tpu can't register the device 'tpu': another package registered '{name}' "
            "in this process. Import only one of them, or set TORCH_DEVICE_BACKEND_AUTOLOAD=0"
        )


def register() -> None:
    """Makes "tpu" a device of this process. Starts no runtime."""
    _check_alone()
    torch.utils.rename_privateuse1_backend("tpu")
    torch._register_device_module("tpu", tpu)
    for name in ("amp", "memory", "random", "streams"):
        sys.modules[f"torch.tpu.{name}"] = getattr(tpu, name)
    torch.utils.generate_methods_for_privateuse1_backend(
        for_tensor=True,
        for_module=True,
        for_packed_sequence=True,
        for_storage=True,
        unsupported_dtype=[
            torch.quint8,
            torch.quint4x2,
            torch.quint2x4,
            torch.qint32,
            torch.qint8,
        ],
    )
    _C.initialize(_search_dirs())
    _patches.apply()
    modes.read_environment()
    atexit.register(_C.shutdown)
