"""The demo in small: no fallback, nothing compiled by the third step, nothing at all by the second
run, and the example itself an ordinary program."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def demo(out: Path, cache: Path, model: str) -> dict:
    """Two epochs of one model on both devices; the report."""
    command = [sys.executable, ROOT / "tools/demo.py", "--models", model, "--seeds", "1"]
    done = subprocess.run(
        [*map(str, command), "--epochs", "2", "--out", str(out)],
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "TORCH_TPU_CACHE_DIR": str(cache), "TORCH_TPU_FALLBACK": "error"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((out / "digits.json").read_text())


@pytest.mark.parametrize("model", ["cnn", "vit"])
def test_second_run_compiles_nothing(tmp_path, model):
    first = demo(tmp_path / "first", tmp_path / "cache", model)
    counts = first["counts"][f"{model}-0"]
    assert counts["compiles"] > 0
    assert counts["third_step_compiles"] == 0
    assert counts["fallbacks"] == 0
    assert counts["peak_bytes"] > 0
    tpu, cpu = first["runs"]
    assert tpu["losses"][-1] < tpu["losses"][0]
    assert tpu["losses"] == pytest.approx(cpu["losses"], rel=0.25)  # dropout draws differ
    assert (tmp_path / "first/digits.png").stat().st_size > 10_000

    second = demo(tmp_path / "second", tmp_path / "cache", model)
    assert second["compiles"] == 0
    assert second["counts"][f"{model}-0"]["from_disk"] > 0
    assert second["runs"][0]["losses"] == tpu["losses"]  # the same programs, the same numbers


def test_the_example_names_no_backend():
    text = (ROOT / "examples/digits.py").read_text()
    assert "torch_tpu" not in text
    assert "torch.tpu" not in text
