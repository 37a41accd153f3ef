"""The command line and the small tools."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_info_names_the_plugin():
    info = json.loads(run(sys.executable, "-m", "torch_tpu.cli", "info", "--json"))
    assert info["platform"] == "cpu" or info["platform"] == "tpu"
    assert info["plugin"].endswith(".so")
    assert "TORCH_TPU_FALLBACK" in run(sys.executable, "-m", "torch_tpu.cli", "info")


def test_ops_finds_rows():
    rows = json.loads(
        run(sys.executable, "-m", "torch_tpu.cli", "ops", "aten::add.Tensor", "--json")
    )
    assert rows[0]["status"] == "done"
    assert "aten::add_.Tensor" in rows[0]["overloads"]
    done = subprocess.run([sys.executable, "-m", "torch_tpu.cli", "ops", "aten::no_such_operator"])
    assert done.returncode == 1


def test_autoload_by_torch_alone():
    code = "import torch; print((torch.ones(2, device='tpu') + 1).cpu().tolist())"
    assert run(sys.executable, "-c", code) == "[2.0, 2.0]\n"
    assert run(sys.executable, "-c", "import torch_tpu; " + code) == "[2.0, 2.0]\n"


def test_size_report():
    assert "src/hlo" in run(sys.executable, "tools/size_report.py")
