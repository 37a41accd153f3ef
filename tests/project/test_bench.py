"""The comparison of dispatch overhead runs, with the peers absent, and measures what it says."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_dispatch_without_peers(tmp_path):
    command = [sys.executable, str(ROOT / "bench/dispatch.py"), "--rounds=3", "--scale=0.02"]
    command += ["--peers", str(tmp_path / "none"), "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "Google: skipped: no environment" in done.stdout
    result = json.loads((tmp_path / "dispatch.json").read_text())
    assert {"jax", "google"} == set(result["skipped"])
    assert {"cpu", "ours"} <= set(result["sides"])
    assert (tmp_path / "dispatch.png").stat().st_size > 0
    for row, clocks in result["rows"].items():
        assert clocks["wall"]["ours"]["us"]["min"] > 0, row
    # Neither the CPU nor the compiler has a part in what is timed.
    assert result["run"]["launches"] > 0
    assert result["run"]["fallbacks"] == result["run"]["compiles"] == 0

    page = tmp_path / "page.md"
    page.write_text("before\n<!-- made by bench/dispatch.py -->\nold\n<!-- end -->\nafter\n")
    command = [sys.executable, str(ROOT / "bench/dispatch.py"), "--page", str(page)]
    subprocess.run([*command, "--out", str(tmp_path)], check=True, timeout=200)
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("<!-- end -->\nafter\n")
    assert "| `x + x` |" in text and "old" not in text
