"""Streams and events keep the order they promise."""

import threading
import weakref

import torch


def test_streams_have_identity():
    a, b = torch.tpu.Stream(), torch.tpu.Stream(priority=-1)
    assert a != b and a == a and hash(a) != hash(b)
    assert isinstance(a, torch.Stream) and a.device == torch.device("tpu:0")
    default = torch.tpu.default_stream()
    assert torch.tpu.current_stream() == default and default.stream_id == 0
    with torch.tpu.stream(a):
        assert torch.tpu.current_stream() == a == torch.accelerator.current_stream()
        with torch.tpu.stream(None):
            assert torch.tpu.current_stream() == a
        with b:
            assert torch.tpu.current_stream() == b
    assert torch.tpu.current_stream() == default
    torch.tpu.set_stream(b)
    assert torch.tpu.current_stream() == b
    torch.tpu.set_stream(default)
    stream = torch.tpu.Stream()
    weak = weakref.ref(stream)
    del stream
    assert weak() is None


def test_current_stream_is_per_thread():
    seen = []
    with torch.tpu.stream(torch.tpu.Stream()):
        thread = threading.Thread(target=lambda: seen.append(torch.tpu.current_stream().stream_id))
        thread.start()
        thread.join()
    assert seen == [0]


def test_events():
    start, end = torch.tpu.Event(enable_timing=True), torch.tpu.Event(enable_timing=True)
    assert isinstance(start, torch.Event)
    start.record()
    x = torch.ones(256, 256).to("tpu")
    for _ in range(3):
        x = x * 0.5 + x
    end.record()
    end.synchronize()
    assert end.query() and start.elapsed_time(end) >= 0
    side = torch.tpu.Stream()
    side.wait_event(end)
    side.wait_stream(torch.tpu.current_stream())
    event = side.record_event()
    event.wait()
    side.synchronize()
    assert side.query() and event.query()
    x.record_stream(side)


def test_generic_types():
    stream, event = torch.Stream("tpu"), torch.Event("tpu")
    event.record(stream)
    stream.wait_event(event)
    event.synchronize()
    assert event.query() and stream.query()


def test_work_on_two_streams_is_ordered():
    x = torch.arange(4.0).to("tpu")
    with torch.tpu.stream(torch.tpu.Stream()):
        x.add_(1)
    x.mul_(2)
    assert x.tolist() == [2.0, 4.0, 6.0, 8.0]
