"""The profiler runs, and its device stubs measure."""

import torch
from torch.profiler import ProfilerActivity, profile, record_function


def test_profile():
    x = torch.ones(4).to("tpu")
    with profile(activities=[ProfilerActivity.CPU]) as prof, record_function("my block"):
        (x + x).cpu()
    names = {e.key for e in prof.key_averages()}
    assert "my block" in names and "aten::add" in names
    assert ProfilerActivity.PrivateUse1 == ProfilerActivity.TPU


def test_legacy_device_profile():
    x = torch.ones(4).to("tpu")
    with torch.autograd.profiler.profile(use_device="tpu", use_kineto=False) as prof:
        y = x + x
    assert y.tolist() == [2.0] * 4
    assert any("add" in e.name for e in prof.function_events)


def test_emitted_ranges_are_accepted():
    with torch.autograd.profiler.record_function("range"):
        torch.ones(1).to("tpu")
