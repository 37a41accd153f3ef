"""TorchTPU: a native PyTorch backend for TPUs. `import torch` loads it; say `device="tpu"`."""

import os
import sys

_autoload = os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD")
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # importing torch below must not import us again
try:
    import torch
finally:
    if _autoload is None:
        del os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"]
    else:
        os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = _autoload

from torch_tpu import _C  # noqa: E402
from torch_tpu._setup import register  # noqa: E402

__version__ = "0.1.0"

register()


def _autoload_entry() -> None:
    """Entry point of the group `torch.backends`: importing this package did the work."""


def counters() -> dict[str, int]:
    """What the runtime has done so far: compiles, disk_hits, memory_hits, launches, fallbacks,
    host_reads and others; `fallback.<op>` for each operator that ran on the CPU."""
    return _C.counters()


def reset_counters() -> None:
    """Sets every counter to zero."""
    _C.reset_counters()


def ops() -> list[dict]:
    """The table of operators as data: name, kind, status, note, and the overloads each row serves."""
    return _C.ops()


def info() -> dict:
    """The plugin, its devices and their capabilities (once a device was used), and every flag with
    its environment variable, value and meaning."""
    return _C.info() | {"version": __version__, "torch": torch.__version__, "python": sys.version}
