"""Which plugin runs, and what is said when none can."""

import os

import fresh_process
import pytest

USE = "print(raised(lambda: torch.ones(1).to('tpu')))\nprint(torch.tpu.is_available())\n"


@pytest.mark.parametrize(
    ("plugin", "available", "words"),
    [
        ("/nowhere/plugin.so", False, ["TORCH_TPU_PLUGIN names no file: /nowhere/plugin.so"]),
        (os.__file__, True, ["can't load the PJRT plugin", os.__file__]),
        ("libm.so.6", True, ["is not a PJRT plugin", "GetPjrtApi"]),
        ("tpu", False, ["TORCH_TPU_PLUGIN=tpu, but no TPU", "Unset TORCH_TPU_PLUGIN"]),
    ],
    ids=["missing", "no_library", "no_plugin", "no_chip"],
)
def test_refused(plugin, available, words):
    if plugin == "libm.so.6":
        with open("/proc/self/maps") as maps:
            lines = maps.readlines()
        found = [line.split()[-1] for line in lines if "libm.so" in line or "/libm-" in line]
        plugin = found[0]
    out = fresh_process.run(USE, TORCH_TPU_PLUGIN=plugin).stdout
    assert out.startswith("RuntimeError: ")
    for word in words:
        assert word in out
    assert out.strip().endswith(str(available))


def test_no_devices():
    out = fresh_process.run(
        USE
        + """
print(torch.tpu.device_count(), torch.accelerator.is_available())
print(raised(lambda: torch.tpu.set_device(0)))
torch.manual_seed(0)
assert (torch.ones(2) + 1).tolist() == [2.0, 2.0]
""",
        TORCH_TPU_DEVICES="0",
    ).stdout.split("\n")
    assert out[0] == out[3] == "RuntimeError: no tpu device: TORCH_TPU_DEVICES is 0"
    assert out[1:3] == ["False", "0 False"]


def test_bad_variable():
    out = fresh_process.run(USE, TORCH_TPU_DEVICES="many").stdout
    assert "TORCH_TPU_DEVICES is 'many'" in out and "int" in out


def test_start_line():
    out = fresh_process.run("torch.ones(1).to('tpu'); torch.ones(1).to('tpu')")
    lines = [line for line in out.stderr.split("\n") if line.startswith("torch_tpu: ")]
    assert len(lines) == 1 and "plugin" in lines[0]


@pytest.mark.skipif(
    "TORCH_TPU_OLD_PLUGIN" not in os.environ, reason="TORCH_TPU_OLD_PLUGIN names no plugin"
)
def test_old_plugin():
    """The oldest plugin that is supported runs."""
    fresh_process.run(
        """
        x = torch.ones(3).to("tpu")
        assert (x + x).exp().shape == (3,) and torch_tpu.info()["pjrt_api_minor"] < 100
        """,
        TORCH_TPU_PLUGIN=os.environ["TORCH_TPU_OLD_PLUGIN"],
    )
