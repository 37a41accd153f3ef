"""Finding faults: which operator made the first NaN. (Indices out of range and reads of memory that
nothing has written are found by debug mode itself: torch.tpu.eager_mode("debug").)"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from torch_tpu import _C

__all__ = ["trap_nan"]


def _numeric(values: Any) -> list[torch.Tensor]:
    """The floating-point and complex tensors on tpu among `values`."""
    return [
        t
        for t in tree_leaves(values)
        if isinstance(t, torch.Tensor)
        and t.device.type == "tpu"
        and (t.is_floating_point() or t.is_complex())
        and t.numel() > 0
    ]


class _Trap(TorchDispatchMode):
    def __init__(self, inf: bool) -> None:
        super().__init__()
        self._inf = inf

    def _bad(self, t: torch.Tensor) -> torch.Tensor:
        """Which elements are trapped, on the device."""
        t = t.detach()
        return ~torch.isfinite(t) if self._inf else torch.isnan(t)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        # Before the call: it may overwrite them.
        inputs = [~torch.isfinite(t.detach()).all() for t in _numeric((args, kwargs))]
        numbers = [x for x in tree_leaves((args, kwargs)) if isinstance(x, float | complex)]
        out = func(*args, **kwargs)
        for k, result in enumerate(_numeric(out)):
            bad = self._bad(result)
            if not bool(bad.any()):
                continue
            if any(bool(b) for b in inputs) or any(x - x != 0 for x in numbers):
                return out  # it came in
            where = [int(i) for i in bad.reshape(result.shape).nonzero()[0]]
            value = result[tuple(where)].item() if where else result.item()
            operands = ", ".join(
                f"{str(t.dtype).removeprefix('torch.')}{list(t.shape)}"
                for t in _numeric((args, kwargs))
            )
            line = _C.user_location()
            raise FloatingPointError(
                f"{func}: result {k} is {value} at {where}, from finite operands ({operands})"
                + (f"; at {line}" if line else "")
            )
        return out


@contextmanager
def trap_nan(inf: bool = False) -> Iterator[None]:
    """Raises FloatingPointError at the first operator on tpu that makes a NaN (with `inf`, or an
    infinity) from finite operands, naming it, its operands, the element and your line. Forward and
    backward; in every mode. Each operator is looked at, so expect several times the run time."""
    with _Trap(inf):
        yield
