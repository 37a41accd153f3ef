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

from torch_tpu import _C, debug  # noqa: E402, F401
from torch_tpu._setup import register  # noqa: E402
from torch_tpu.explain import explain_compiles, forbid_compiles, hlo  # noqa: E402, F401
from torch_tpu.modes import EagerMode, eager_mode, get_eager_mode, set_eager_mode  # noqa: E402, F401

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
    """The table of operators as data: name, kind, status, note, and the overloads each row
    serves."""
    return _C.ops()


class Info(dict):
    """What `info()` gives: a dictionary that prints as a page."""

    def __str__(self) -> str:
        head = [
            f"torch_tpu {self['version']}, torch {self['torch']}, "
            f"Python {self['python'].split()[0]}"
        ]
        if self["started"]:
            can = ", ".join(k for k, v in self["capabilities"].items() if v)
            head += [
                f"plugin    {self['plugin']}",
                f"          {self['plugin_reason']}; PJRT C API 0.{self['pjrt_api_minor']}",
                f"device    {self['devices']} x {self['device_kind']} ({self['platform']}); {can}",
                f"cache     {self['cache_dir'] or 'off'}",
            ]
        else:
            head.append(f"device    {self['devices']} to be started by their first use")
        head.append(f"float32 matmul precision: {self['float32_matmul_precision']}")
        width = max(len(f["variable"]) for f in self["flags"])
        flags = [
            f"{f['variable']:<{width}} = {f['value'] or '(unset)'}: {f['doc']}"
            for f in self["flags"]
        ]
        return "\n".join(head + ["flags:"] + ["  " + line for line in flags])

    __repr__ = __str__


def info() -> Info:
    """The plugin, its devices and their capabilities (once a device was used), and every flag with
    its environment variable, value and meaning. Prints as a page; starts nothing."""
    return Info(
        {"devices": _C.device_count()}
        | _C.info()
        | {
            "version": __version__,
            "torch": torch.__version__,
            "python": sys.version,
            "float32_matmul_precision": torch.get_float32_matmul_precision(),
        }
    )
