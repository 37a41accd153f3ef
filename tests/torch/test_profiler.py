"""torch.profiler: the device's tracks, whose time is whose, memory, and nothing when off."""

import json

import fresh_process
import pytest
import torch
import torch.nn.functional as F
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function, schedule

import torch_tpu

BOTH = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]


def trace(prof, tmp_path):
    path = str(tmp_path / "trace.json")
    prof.export_chrome_trace(path)
    return read_trace(path)


def read_trace(path):
    """(events with a duration, {pid: name}, {(pid, tid): name}) of a Chrome trace."""
    with open(path) as file:
        all_events = json.load(file)["traceEvents"]
    processes = {e["pid"]: e["args"]["name"] for e in all_events if e.get("name") == "process_name"}
    threads = {
        (e["pid"], e["tid"]): e["args"]["name"]
        for e in all_events
        if e.get("name") == "thread_name"
    }
    return [e for e in all_events if e.get("ph") == "X"], processes, threads


def test_launches_are_on_the_devices_track(tmp_path):
    x = torch.ones(64, 64).to("tpu")
    (x @ x + x).cpu()
    before = torch_tpu.counters()["launches"]
    with profile(activities=BOTH) as prof, record_function("my block"):
        y = x @ x
        y = y + x
        y.add_(x)
        y.cpu()
    launched = torch_tpu.counters()["launches"] - before
    spans, processes, threads = trace(prof, tmp_path)
    kernels = [e for e in spans if e["cat"] == "kernel"]
    assert [e["name"] for e in kernels] == ["aten::mm", "aten::add.Tensor", "aten::add_.Tensor"]
    assert launched == len(kernels)
    assert all(e["dur"] > 0 for e in kernels)
    assert {processes[e["pid"]] for e in kernels} == {"tpu:0"}
    assert {threads[e["pid"], e["tid"]] for e in kernels} == {"programs"}
    assert all(e["args"]["operands"] == "float32[64, 64], float32[64, 64]" for e in kernels)
    # One after the other, as a device runs them.
    for first, second in zip(kernels, kernels[1:], strict=False):
        assert first["ts"] + first["dur"] <= second["ts"] + 1e-3

    # Each is tied to the operator that asked for it, and to the call that launched it.
    operators = {e["args"]["External id"]: e["name"] for e in spans if e["cat"] == "cpu_op"}
    asked = [operators[e["args"]["External id"]] for e in kernels]
    assert asked == ["aten::mm", "aten::add", "aten::add_"]
    assert len([e for e in spans if e["name"] == "launch"]) == launched

    block = [e for e in spans if e["cat"] == "gpu_user_annotation" and e["tid"] == 0]
    assert [e["name"] for e in block] == ["my block"]
    assert block[0]["pid"] == kernels[0]["pid"]
    assert block[0]["ts"] <= kernels[0]["ts"]
    assert block[0]["ts"] + block[0]["dur"] >= kernels[-1]["ts"] + kernels[-1]["dur"] - 1e-3


def test_device_time_is_its_operators():
    x = torch.ones(256, 256).to("tpu")
    (x @ x).sum().item()
    with profile(activities=BOTH) as prof:
        for _ in range(3):
            y = x @ x
        y.sum().item()
    rows = {(e.key, e.device_type): e for e in prof.key_averages()}
    on_device = rows["aten::mm", DeviceType.PrivateUse1]
    assert on_device.count == 3 and on_device.self_device_time_total > 0
    operator = rows["aten::mm", DeviceType.CPU]
    assert operator.device_time_total == pytest.approx(on_device.self_device_time_total)
    # The read is charged with its wait and its transfer, not with what it waited for.
    read = rows["aten::_local_scalar_dense", DeviceType.CPU]
    copy = rows["Memcpy DtoH", DeviceType.PrivateUse1]
    assert copy.count == 1 and read.device_time_total == copy.self_device_time_total


def test_transfers_have_sizes(tmp_path):
    host = torch.ones(1000)
    with profile(activities=BOTH) as prof:
        y = host.to("tpu")
        y.cpu()
    spans, processes, threads = trace(prof, tmp_path)
    moved = {e["name"]: e for e in spans if e["cat"] == "gpu_memcpy"}
    assert set(moved) == {"Memcpy HtoD", "Memcpy DtoH"}
    for e in moved.values():
        assert e["args"]["bytes"] == 4000 and e["dur"] > 0
        assert processes[e["pid"]] == "tpu:0"
        assert threads[e["pid"], e["tid"]] == "transfers"


def test_compiles_and_waits_are_charged_to_their_causes(tmp_path):
    path = str(tmp_path / "trace.json")
    fresh_process.run(
        f"""
        from torch.profiler import ProfilerActivity, profile
        x = torch.ones(3, 5, 7).to("tpu")
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
            x.cos().cumsum(1).cpu()
        assert torch_tpu.counters()["compiles"] == 2
        prof.export_chrome_trace({path!r})
        """,
        TORCH_TPU_CACHE_DIR=str(tmp_path / "cache"),
    )
    spans, processes, threads = read_trace(path)
    made = [e for e in spans if threads.get((e["pid"], e["tid"])) == "compiles"]
    assert {e["name"]: e["args"]["operator"] for e in made} == {
        "compile aten::cos on float32[3, 5, 7]": "aten::cos",
        "compile aten::cumsum on float32[3, 5, 7]": "aten::cumsum",
    }
    assert {processes[e["pid"]] for e in made} == {"tpu:0"}
    # The host's wait is on its thread, inside the operator that waited; the device's track shows
    # the two programs, once each and not for as long as they took to compile.
    (copy,) = (e for e in spans if e["name"] == "aten::_to_copy")
    (wait,) = (e for e in spans if e["name"].startswith("waiting for a program"))
    assert (wait["pid"], wait["tid"]) == (copy["pid"], copy["tid"])
    assert copy["ts"] <= wait["ts"] and wait["ts"] + wait["dur"] <= copy["ts"] + copy["dur"]
    kernels = [e for e in spans if e["cat"] == "kernel"]
    assert [e["name"] for e in kernels] == ["aten::cos", "aten::cumsum"]
    compiling = {e["args"]["operator"]: e for e in made}
    for e in kernels:
        assert e["ts"] >= compiling[e["name"]]["ts"] + compiling[e["name"]]["dur"]
    # Launched from the queue, by another thread than the user's.
    launches = [e for e in spans if e["name"] == "launch"]
    assert {e["args"]["operator"] for e in launches} == {"aten::cos", "aten::cumsum"}
    assert all(e["tid"] != e["pid"] for e in launches)


def test_synchronize_is_a_wait():
    x = torch.ones(4).to("tpu")
    with profile(activities=BOTH) as prof:
        x + x
        torch.tpu.synchronize()
    assert any(e.name == "synchronize" for e in prof.events())


def test_backward_has_its_callers_annotations(tmp_path):
    weight = torch.ones(8, 8, device="tpu", requires_grad=True)
    x = torch.ones(4, 8).to("tpu")
    (x @ weight).sum().backward()
    with profile(activities=BOTH) as prof:
        with record_function("forward pass"):
            loss = (x @ weight).sum()
        with record_function("backward pass"):
            loss.backward()
    spans, _, _ = trace(prof, tmp_path)
    kernels = [e for e in spans if e["cat"] == "kernel"]
    span = {e["name"]: e for e in spans if e["cat"] == "gpu_user_annotation" and e["tid"] == 0}
    assert set(span) == {"forward pass", "backward pass"}
    forward, back = span["forward pass"], span["backward pass"]
    product, gradient = (e for e in kernels if e["name"] == "aten::mm")
    assert forward["ts"] <= product["ts"] < forward["ts"] + forward["dur"] <= back["ts"] + 1e-3
    assert back["ts"] <= gradient["ts"] < back["ts"] + back["dur"]


def test_schedule_and_steps(tmp_path):
    x = torch.ones(4).to("tpu")
    seen = []
    steps = schedule(wait=1, warmup=1, active=2, repeat=1)
    with profile(activities=BOTH, schedule=steps, on_trace_ready=lambda p: seen.append(p)) as prof:
        for _ in range(5):
            x + x
            prof.step()
    assert len(seen) == 1
    spans, _, _ = trace(prof, tmp_path)
    assert len([e for e in spans if e["cat"] == "kernel"]) == 2
    steps = [e["name"] for e in spans if e["cat"] == "gpu_user_annotation"]
    assert steps == ["ProfilerStep#2", "ProfilerStep#3"]


def test_a_fused_program_is_one_launch(tmp_path):
    x = torch.ones(64).to("tpu")
    fuse = torch_tpu.eager_mode("fuse")
    with profile(activities=BOTH) as prof, fuse, record_function("block"):
        (((x + x) * x - x).exp()).cpu()
    spans, _, _ = trace(prof, tmp_path)
    kernels = [e for e in spans if e["cat"] == "kernel"]
    (kernel,) = kernels
    assert kernel["name"].startswith("a trace of 4 calls") and kernel["dur"] > 0
    assert "block" in {e["name"] for e in spans if e["cat"] == "gpu_user_annotation"}


def test_off_costs_no_memory():
    x = torch.ones(4).to("tpu")

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    for _ in range(20_000):
        x + x
    before = resident()
    for _ in range(100_000):
        x + x
    assert resident() - before < 4 << 20


def test_every_device_has_its_track(tmp_path):
    path = str(tmp_path / "trace.json")
    fresh_process.run(
        f"""
        from torch.profiler import ProfilerActivity, profile
        tensors = [torch.ones(4).to(f"tpu:{{i}}") for i in range(3)]
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
            for x in tensors:
                (x + x).cpu()
        prof.export_chrome_trace({path!r})
        """,
        TORCH_TPU_DEVICES="3",
    )
    spans, processes, threads = read_trace(path)
    kernels = [e for e in spans if e["cat"] == "kernel"]
    assert [processes[e["pid"]] for e in kernels] == ["tpu:0", "tpu:1", "tpu:2"]
    assert {threads[e["pid"], e["tid"]] for e in kernels} == {"programs"}


def memory_records(prof):
    return [e for e in prof.profiler.kineto_results.events() if e.name() == "[memory]"]


def test_memory_events_balance():
    x = torch.ones(256).to("tpu")
    (x + x).cpu()
    with profile(activities=BOTH, profile_memory=True) as prof:
        y = x + x  # 1024 bytes
        z = torch.empty(50, device="tpu")  # 200
        y[2:5].add_(1)
        del y, z
    records = [e for e in memory_records(prof) if e.device_type() == DeviceType.PrivateUse1]
    sizes = [e.nbytes() for e in records]
    assert sizes[:2] == [1024, 200]
    assert sum(sizes) == 0 and -1024 in sizes and -200 in sizes
    assert {e.device_index() for e in records} == {0}
    add = next(e for e in prof.key_averages() if e.key == "aten::add")
    assert add.self_device_memory_usage == 1024


def test_memory_totals_follow_the_events():
    with profile(activities=BOTH, profile_memory=True) as prof:
        kept = [torch.empty(n, device="tpu") for n in (10, 100, 1000)]
    tree = prof.profiler.kineto_results.experimental_event_tree()
    found, todo = [], list(tree)
    while todo:
        node = todo.pop()
        todo += node.children
        if node.name == "[memory]" and node.extra_fields.device.type == "tpu":
            found.append((node.start_time_ns, node.extra_fields))
    fields = [f for _, f in sorted(found, key=lambda item: item[0])]
    assert [f.alloc_size for f in fields] == [40, 400, 4000]
    totals = [f.total_allocated for f in fields]
    assert [b - a for a, b in zip(totals, totals[1:], strict=False)] == [400, 4000]
    assert [f.ptr for f in fields] == [t.data_ptr() for t in kept]


@pytest.mark.filterwarnings("ignore:`export_memory_timeline` is deprecated")
def test_memory_timeline(tmp_path):
    net = torch.nn.Linear(16, 16).to("tpu")
    x = torch.ones(4, 16).to("tpu")
    with profile(activities=BOTH, profile_memory=True, record_shapes=True, with_stack=True) as prof:
        F.relu(net(x)).sum().backward()
    path = tmp_path / "timeline.json"
    prof.export_memory_timeline(str(path), device="tpu:0")
    times, sizes = json.loads(path.read_text())
    assert len(times) == len(sizes) > 2
    weights = 4 * (16 * 16 + 16)
    assert max(sum(s) for s in sizes) >= 2 * weights  # parameters and their gradients


def test_off_means_nothing(tmp_path):
    x = torch.ones(4).to("tpu")
    with profile(activities=BOTH):
        x + x
    with profile(activities=[ProfilerActivity.CPU]) as prof:  # the device was not asked for
        (x + x).cpu()
    spans, _, _ = trace(prof, tmp_path)
    assert {e["cat"] for e in spans} <= {"cpu_op", "Trace", "user_annotation"}
    assert not memory_records(prof)
    # Between profiles nothing is kept for the next.
    for _ in range(100):
        x + x
    with profile(activities=BOTH) as prof:
        pass
    assert not [e for e in prof.events() if e.device_type == DeviceType.PrivateUse1]


def test_cpu_profile():
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
