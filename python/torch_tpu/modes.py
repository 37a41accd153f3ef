"""Eager modes: when the work of a call runs, and what is checked."""

import enum
import os
from collections.abc import Iterator
from contextlib import contextmanager

from torch.optim.optimizer import register_optimizer_step_post_hook

from torch_tpu import _C


class EagerMode(enum.Enum):
    """STRICT (the default): each call is queued at once, asynchronously. DEBUG: each call is waited
    for and its indices checked at once, so that an error names its line. FUSE: calls are recorded
    and run together at the next look from the host."""

    STRICT = "strict"
    DEBUG = "debug"
    FUSE = "fuse"


_MODES = tuple(m.value for m in EagerMode)
# The variables of Google's torch_tpu; TORCH_TPU_EAGER_MODE comes first.
_VARIABLES = {"TPU_LAUNCH_BLOCKING": "debug", "TPU_DEFER_AND_FUSE": "fuse"}


def _index(mode: str | EagerMode) -> int:
    name = mode.value if isinstance(mode, EagerMode) else mode
    if name not in _MODES:
        raise ValueError(f"unknown eager mode {mode!r}: one of {', '.join(_MODES)}")
    return _MODES.index(name)


_hooked = False


def _prepare(mode: int) -> None:
    """Fuse mode cuts its record where an optimizer's step ends, so that each step of a training
    loop is the same programs. The hook is set with the first use of the mode."""
    global _hooked
    if _hooked or _MODES[mode] != "fuse":
        return
    _hooked = True

    def end_of_step(*_: object) -> None:
        if _MODES[_C.current_mode()] == "fuse":
            _C.flush("optimizer step")

    register_optimizer_step_post_hook(end_of_step)


def read_environment() -> None:
    """Applies TORCH_TPU_EAGER_MODE, TPU_LAUNCH_BLOCKING=1 and TPU_DEFER_AND_FUSE=1. Called once, at
    registration."""
    if os.environ.get("TORCH_TPU_EAGER_MODE"):
        _prepare(_C.current_mode())
        return
    for variable, mode in _VARIABLES.items():
        if os.environ.get(variable, "0") not in ("", "0"):
            set_eager_mode(mode)
            return


def set_eager_mode(mode: str | EagerMode) -> None:
    """Sets the mode of all threads that have not set their own: "strict", "debug" or "fuse".

    Safe at any point: what fuse mode has recorded runs at the next look at a value, whatever the
    mode is then."""
    _prepare(_index(mode))
    _C.set_flag("eager_mode", _MODES[_index(mode)])


def get_eager_mode() -> str:
    """The mode of this thread."""
    return _MODES[_C.current_mode()]


@contextmanager
def eager_mode(mode: str | EagerMode) -> Iterator[None]:
    """Sets the mode of this thread's work for a block, its backward passes included. Nests."""
    _prepare(_index(mode))
    before = _C.exchange_mode(_index(mode))
    try:
        yield
    finally:
        _C.exchange_mode(before)
