"""The core set (tests/core) on the old plugin and with each device capability forced off, and with
debug and fuse modes: what works here must work on a chip, where none of them holds."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
CORE = Path(__file__).parents[1] / "core"


def old_plugin() -> str | None:
    spec = importlib.util.find_spec("xla_plugins")
    for folder in spec.submodule_search_locations or () if spec else ():
        path = Path(folder) / "xla_cpu_pjrt" / "xla_cpu_pjrt.so"
        if path.exists():
            return str(path)
    return None


VARIANTS = {
    "no linear_layout": {"TORCH_TPU_DISABLE_CAPABILITIES": "linear_layout"},
    "no host_readable": {"TORCH_TPU_DISABLE_CAPABILITIES": "host_readable"},
    "no inline_execute": {"TORCH_TPU_DISABLE_CAPABILITIES": "inline_execute"},
    "no native_64bit": {"TORCH_TPU_DISABLE_CAPABILITIES": "native_64bit"},
    "debug mode": {"TORCH_TPU_EAGER_MODE": "debug"},
    "fuse mode": {"TORCH_TPU_EAGER_MODE": "fuse"},
    "old plugin": {"TORCH_TPU_PLUGIN": old_plugin()},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_core_set(name):
    variables = VARIANTS[name]
    if None in variables.values():
        pytest.skip("the package xla-cpu-pjrt (API 0.81) is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CORE)],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
