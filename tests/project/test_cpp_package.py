"""The core installs as a CMake package, and the C++ example builds against it and nothing else."""

import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/dev"


def tool(name: str) -> str:
    found = shutil.which(name, path=sysconfig.get_path("scripts") + os.pathsep + os.environ["PATH"])
    assert found, f"{name} is missing"
    return found


def run(*command: object, **kwargs) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **kwargs)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The built example, from a copy of its folder that is not inside the project."""
    if not (BUILD / "build.ninja").exists():
        pytest.fail("no build in build/dev: run `make build`")
    tmp = tmp_path_factory.mktemp("package")
    run(tool("ninja"), "-C", BUILD, "-j2", "tpu_client")
    run(tool("cmake"), "--install", BUILD, "--component", "core", "--prefix", tmp / "prefix")
    shutil.copytree(ROOT / "examples/cpp", tmp / "example")
    run(
        tool("cmake"),
        "-S",
        tmp / "example",
        "-B",
        tmp / "out",
        "-G",
        "Ninja",
        f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}",
        f"-DCMAKE_PREFIX_PATH={tmp / 'prefix'}",
    )
    run(tool("cmake"), "--build", tmp / "out")
    return tmp / "out/example"


def test_example_prints_its_program_and_runs(example):
    import torch

    import torch_tpu

    torch.tpu.synchronize()
    plugin = torch_tpu.info()["plugin"]
    out = run(example, env={**os.environ, "TORCH_TPU_PLUGIN": plugin})
    text = re.search(r"```mlir\n(.*?)```", (ROOT / "README.md").read_text(), re.S).group(1)
    assert out.startswith(text)
    assert re.search(r"^20 40\.7616 20\.964 40\.9951 on cpu$", out, re.M), out


def test_example_says_what_is_missing(example):
    env = {**os.environ, "TORCH_TPU_PLUGIN": "/nowhere/plugin.so"}
    done = subprocess.run([example], capture_output=True, text=True, env=env)
    assert done.returncode == 1
    assert "/nowhere/plugin.so" in done.stderr


def test_headers_stand_alone_and_name_no_pjrt(example):
    include = example.parents[1] / "prefix/include"
    headers = sorted(include.rglob("*.h"))
    assert [str(h.relative_to(include)) for h in headers] == [
        "torch_tpu/client.h",
        "torch_tpu/core/base/status.h",
        "torch_tpu/core/hlo/hlo.h",
        "torch_tpu/core/shape/dims.h",
        "torch_tpu/core/shape/dtype.h",
        "torch_tpu/hlo.h",
    ]
    for header in headers:
        assert "PJRT_" not in header.read_text()
        run("g++", "-std=c++20", "-fsyntax-only", "-x", "c++", "-I", include, header)
