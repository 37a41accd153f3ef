"""What is written about the project is true of it: the operators' page, versions, links."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import torch_tpu

ROOT = Path(__file__).resolve().parents[2]


def test_ops_page_is_fresh():
    sys.path.insert(0, str(ROOT / "tools"))
    import ops_page

    assert (ROOT / "docs/ops.md").read_text() == ops_page.page(), "run `make docs`"


def test_versions_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cmake = re.search(
        r"project\(torch_tpu VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()
    )
    assert project["version"] == torch_tpu.__version__ == cmake.group(1)
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text()


def pages() -> list[Path]:
    return [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


@pytest.mark.parametrize("page", pages(), ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert (page.parent / target).exists(), f"{page}: {target}"


def test_every_flag_is_documented():
    text = (ROOT / "docs/guide/environment.md").read_text()
    missing = [f["variable"] for f in torch_tpu.info()["flags"] if f"`{f['variable']}`" not in text]
    assert not missing


def test_every_counter_is_documented():
    text = (ROOT / "docs/guide/profiling.md").read_text()
    missing = [name for name in torch_tpu.counters() if "." not in name and f"`{name}`" not in text]
    assert not missing


def test_python_of_the_profiling_guide_runs(tmp_path):
    text = (ROOT / "docs/guide/profiling.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    code = "import torch_tpu\n" + "\n".join(blocks)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=200, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "aten::mm" in done.stdout and "forward" in done.stdout
    assert (tmp_path / "trace.json").stat().st_size > 0


def test_python_of_the_readme_runs():
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S).group(1)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr


def test_cpp_of_the_readme_is_the_example():
    code = re.search(r"```cpp\n(.*?)```", (ROOT / "README.md").read_text(), re.S).group(1)
    example = (ROOT / "examples/cpp/main.cc").read_text()
    for line in code.splitlines():
        assert line.strip() in example, line
