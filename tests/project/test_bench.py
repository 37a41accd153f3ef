"""The benchmarks run with the peers absent, measure what they say, and read rows from text."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SUITES = sorted((ROOT / "bench/suites").glob("*.toml"))


def run(tmp_path, *args):
    command = [sys.executable, str(ROOT / "bench/run.py"), "--peers", str(tmp_path / "none")]
    done = subprocess.run(
        [*command, "--out", str(tmp_path), *args], capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def result_of(tmp_path, suite):
    assert (tmp_path / f"{suite}.png").stat().st_size > 0
    return json.loads((tmp_path / f"{suite}.json").read_text())


def test_calls_and_page(tmp_path):
    rows = "x + x|x.add_(x)|x[0].item()|MLP forward"
    said = run(
        tmp_path, "dispatch", "--rounds=3", "--calls=20", f"--rows={rows}",
        "--columns=cpu,ours,fuse,debug,google,jax",
    )  # fmt: skip
    result = result_of(tmp_path, "dispatch")
    assert set(result["skipped"]) == {"jax", "google"}
    assert "Google: left out: no environment none/google" in said
    assert list(result["rows"]) == rows.split("|")
    for row, cells in result["rows"].items():
        assert set(cells) >= {"cpu", "ours", "fuse", "debug"}
        for column in ("cpu", "ours", "fuse", "debug"):
            for clock in ("wall", "cpu", "own"):
                assert cells[column][clock]["us"]["median"] > 0, (row, column, clock)
        assert cells["ours"]["wall"]["ratio"]["median"] == 1
    assert "| `x + x`, PyTorch CPU | 0.25 |" in said  # the goal whose column is there
    # Neither the CPU nor, after the first calls, the compiler has a part in what is timed.
    assert result["counters"]["fallbacks"] == 0
    assert result["counters"]["launches"] > 3 * 20

    page = tmp_path / "page.md"
    page.write_text(
        "before\n<!-- bench: dispatch -->\nold\n<!-- end -->\nbetween\n"
        "<!-- bench: models -->\nkept\n<!-- end -->\nafter\n"
    )
    run(tmp_path, "--page", str(page))
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("<!-- end -->\nafter\n")
    assert "| `x + x` |" in text and "old" not in text and "\nkept\n" in text


def test_a_row_is_a_line_of_text(tmp_path):
    suite = tmp_path / "mine.toml"
    suite.write_text(
        """
title = "Mine"
kind = "calls"
unit = "ms"
columns = ["cpu", "ours"]
rounds = 2
calls = 3

[inputs]
a = [8, 8]
i = { shape = [3], dtype = "int64", high = 8 }
host = { shape = [16], host = true }

[[row]]
name = "rows"
torch = "a[i] @ a"

[[row]]
name = "upload"
torch = "host.to(device)"

[[row]]
name = "differs"
torch = "a + 1"
cpu = "a + 2"

[[row]]
name = "raises"
torch = "a.no_such_method()"
"""
    )
    said = run(tmp_path, str(suite))
    rows = result_of(tmp_path, "mine")["rows"]
    assert rows["rows"]["ours"]["wall"]["ratio"]["median"] == 1
    assert rows["upload"]["cpu"]["wall"]["us"]["median"] > 0
    assert "expected" in rows["differs"]["ours"]["error"]  # never timed: it is another computation
    assert "no_such_method" in rows["raises"]["cpu"]["error"]
    assert "`raises`, PyTorch CPU: AttributeError" in said


@pytest.mark.slow
def test_models(tmp_path):
    run(
        tmp_path, "models", "--rounds=2", "--calls=1", "--columns=ours,fuse,graph",
        "--rows=MLP, forward|MLP, training",
    )  # fmt: skip
    rows = result_of(tmp_path, "models")["rows"]
    for cells in rows.values():
        for column in ("ours", "fuse", "graph"):
            assert cells[column]["wall"]["us"]["median"] > 0, cells[column]


@pytest.mark.slow
def test_first_runs(tmp_path):
    said = run(tmp_path, "cold_start", "--rounds=1", "--columns=ours,fuse", "--rows=MLP")
    cells = result_of(tmp_path, "cold_start")["rows"]["MLP"]
    strict, fuse = (cells[c] for c in ("ours", "fuse"))
    assert strict["programs"]["median"] > fuse["programs"]["median"] > 0
    assert 0 < strict["second process s"]["median"] < strict["first s"]["median"]
    assert strict["device MB"]["median"] > 0 and strict["process MB"]["median"] > 0
    assert "| programs compiled | ours | ours, fuse |" in said


def test_a_column_that_dies_is_left_out_of_its_row(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import columns

    side = columns.start("cpu", ROOT / "none", {})
    try:
        row = {"torch": "__import__('os')._exit(3)", "let": {}, "inputs": {}}
        with pytest.raises(columns.Died, match="no message"):
            side.ask("prepare", row=row)
        side = side.again()
        answer = side.ask("prepare", row={"torch": "torch.ones(2)", "let": {}, "inputs": {}})
        assert answer["values"] == [1.0, 1.0, 1.0]
    finally:
        side.close()


@pytest.mark.parametrize("path", SUITES, ids=lambda p: p.stem)
def test_suites_are_sound(path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import columns

    suite = tomllib.loads(path.read_text())
    names = [row["name"] for row in suite["row"]]
    assert len(names) == len(set(names))
    assert set(suite["columns"]) <= set(columns.TITLES) and "ours" in suite["columns"]
    known = {"name", "torch", "jax", "let", "calls", "unchecked", *columns.TITLES}
    for row in suite["row"]:
        assert set(row) <= known, row
    for goal in suite.get("goal", []):
        assert goal["row"] in names and goal["column"] in suite["columns"]
