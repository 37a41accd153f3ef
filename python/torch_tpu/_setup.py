"""Registration with PyTorch, in the order that works: name, device module, methods, patches."""

import atexit
import os
import sys

import torch

from torch_tpu import _C, tpu


def _search_dirs() -> list[str]:
    """Folders where plugin packages may be installed."""
    return [p for p in sys.path if p and os.path.isdir(p)]


def register() -> None:
    """Makes "tpu" a device of this process. Starts no runtime."""
    torch.utils.rename_privateuse1_backend("tpu")
    torch._register_device_module("tpu", tpu)
    torch.utils.generate_methods_for_privateuse1_backend(
        for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True
    )
    _C.initialize(_search_dirs())
    atexit.register(_C.shutdown)
