"""Streams and events of torch.tpu.

A device runs its work in the order of the calls, so work on every stream of a device keeps that
order; an event is the end of what was queued before it was recorded.
"""

from typing import Any

import torch

from torch_tpu import _C
from torch_tpu.tpu._device import _index


class Stream(torch.Stream):
    """A stream of a device (the current one if None). `priority` is accepted and changes
    nothing."""

    def __new__(cls, device: Any = None, priority: int = 0, **kwargs: Any) -> "Stream":
        if "stream_id" in kwargs:
            return super().__new__(cls, priority=priority, **kwargs)
        return super().__new__(cls, device=torch.device("tpu", _index(device)), priority=priority)

    def record_event(self, event: "Event | None" = None) -> "Event":
        """Records an event (a new one if None) on this stream and gives it back."""
        event = Event() if event is None else event
        event.record(self)  # torch.Stream.record_event refuses subclasses of torch.Event
        return event

    def __repr__(self) -> str:
        return f"torch.tpu.Stream(device=tpu:{self.device_index}, id={self.stream_id})"


class Event(torch.Event):
    """A point in a device's order of work: record, query, synchronize, wait, elapsed_time (ms)."""

    def __new__(
        cls,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        device: Any = None,
    ) -> "Event":
        if interprocess:
            raise RuntimeError("a tpu event can't be shared with another process")
        return super().__new__(
            cls, torch.device("tpu", _index(device)), enable_timing=enable_timing, blocking=blocking
        )

    def elapsed_time(self, end_event: torch.Event) -> float:
        """Milliseconds from this event to `end_event`; waits for both."""
        if not (self.event_id and end_event.event_id):
            raise RuntimeError("both events must be recorded before their elapsed time is asked")
        # torch.Event.elapsed_time refuses subclasses of torch.Event
        return _C.event_elapsed_ms(self.event_id, end_event.event_id)


def _own(stream: torch.Stream) -> Stream:
    return Stream(
        stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type
    )


def current_stream(device: Any = None) -> Stream:
    """This thread's current stream of a device."""
    return _own(torch._C._accelerator_getStream(_index(device)))


def default_stream(device: Any = None) -> Stream:
    """The stream with id 0 of a device."""
    now = current_stream(device)
    return Stream(stream_id=0, device_index=now.device_index, device_type=now.device_type)


def set_stream(stream: torch.Stream | None) -> None:
    """Makes `stream`, and its device, current. None changes nothing."""
    if stream is not None:
        torch._C._accelerator_setStream(stream)


class StreamContext:
    """Makes a stream and its device current inside; None changes nothing."""

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> torch.Stream | None:
        if self.stream is not None:
            self._device = torch.tpu.current_device()
            self._old = current_stream(self.stream.device_index)
            set_stream(self.stream)
        return self.stream

    def __exit__(self, *_: Any) -> None:
        if self.stream is not None:
            set_stream(self._old)
            torch.tpu.set_device(self._device)


def stream(stream: torch.Stream | None) -> StreamContext:
    """Context manager that makes `stream` current."""
    return StreamContext(stream)
