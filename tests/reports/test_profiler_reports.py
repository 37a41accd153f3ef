"""Reports X1, X3, X4: what the profiler names, and what a read of one value costs. Not X2, of many
hosts."""

import pytest
import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function


def test_x1_names_of_the_user_are_in_the_profile():
    x = torch.ones(64, 64, device="tpu")
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
        with record_function("outer"):
            y = x @ x
            with record_function("inner"):
                y = y.tanh()
        y.cpu()
    # Annotations are on the device's track, too.
    events = {e.name: e for e in prof.events() if e.device_type == DeviceType.CPU}
    outer, inner, mm = events["outer"], events["inner"], events["aten::mm"]
    assert outer.time_range.start <= mm.time_range.start <= mm.time_range.end
    assert mm.time_range.end <= outer.time_range.end
    assert outer.time_range.start <= inner.time_range.start
    assert {"aten::tanh"} <= {c.name for c in inner.cpu_children}


def test_x1_device_events_of_all_devices():
    """The stubs record on the device that an operator runs on, and measure there."""
    with torch.autograd.profiler.profile(use_device="tpu", use_kineto=False) as prof:
        for d in range(torch.tpu.device_count()):
            with torch.tpu.device(d), record_function(f"on {d}"):
                torch.ones(256, 256, device=f"tpu:{d}").tanh().sum()
    names = [e.name for e in prof.function_events]
    assert [n for n in names if n.startswith("on ")] == [
        f"on {d}" for d in range(torch.tpu.device_count())
    ]
    assert all(e.device_time_total >= 0 for e in prof.function_events)


def test_x3_a_compile_is_charged_to_its_operator():
    """Not to the read that comes later."""
    x = torch.ones(37, 41, device="tpu")
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        y = (torch.erfinv(x / 3).lgamma() @ x.t()).softmax(0).sum()
        torch.tpu.synchronize()
        y.item()
    by_name = {e.key: e for e in prof.key_averages()}
    read = by_name["aten::item"].cpu_time_total
    work = sum(e.self_cpu_time_total for e in prof.key_averages())
    assert read < 0.2 * work, (read, work)


@pytest.mark.strict
def test_x4_one_read_is_one_read(counters):
    """`.item()` each step waits; nothing that ran runs again."""
    x, w = torch.randn(8, 8, device="tpu"), torch.randn(8, 8, device="tpu", requires_grad=True)

    def step():
        loss = (x @ w).square().mean()
        loss.backward()
        with torch.no_grad():
            w.sub_(w.grad, alpha=0.01)
        w.grad = None
        return loss

    for _ in range(2):
        step().item()
    counters.reset()
    for _ in range(3):
        step()
    torch.tpu.synchronize()
    unread = counters.launches
    counters.reset()
    for _ in range(3):
        step().item()
    assert counters.launches == unread
    assert counters.compiles == 0
    assert counters.host_reads == 3
