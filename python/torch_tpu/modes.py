"""Eager modes: "strict" (default, asynchronous), "debug" (each call waited for and checked at
once), "fuse" (preview: calls are recorded and run together)."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch_tpu import _C

_MODES = ("strict", "debug", "fuse")


def _index(mode: str) -> int:
    if mode not in _MODES:
        raise ValueError(f"unknown eager mode {mode!r}: one of {', '.join(_MODES)}")
    return _MODES.index(mode)


def set_eager_mode(mode: str) -> None:
    """Sets the mode of all threads that have not set their own."""
    _index(mode)
    _C.set_flag("eager_mode", mode)


def get_eager_mode() -> str:
    """The mode of this thread."""
    return _MODES[_C.current_mode()]


@contextmanager
def eager_mode(mode: str) -> Iterator[None]:
    """Sets this thread's mode for a block. Nests."""
    before = _C.exchange_thread_mode(_index(mode))
    try:
        yield
    finally:
        _C.exchange_thread_mode(before)
