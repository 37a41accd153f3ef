"""The folder of compiled programs: read-only, damaged, full, off. A bad folder costs time, no
answer."""

import os
import pathlib

import fresh_process
import pytest

PROGRAM = """
x = torch.arange(4.0).to("tpu")
assert (x + x).tolist() == [0.0, 2.0, 4.0, 6.0]
c = torch_tpu.counters()
numbers = [c[k] for k in ("compiles", "disk_hits", "disk_writes", "disk_errors")]
print("counts", *numbers, file=sys.stderr)
"""


def counts(out) -> list[int]:
    return [int(n) for n in out.stderr.split("counts")[1].split()]


def test_second_process_compiles_nothing(tmp_path):
    env = {"TORCH_TPU_CACHE_DIR": str(tmp_path / "cache")}
    compiles, hits, writes, errors = counts(fresh_process.run(PROGRAM, **env))
    assert compiles >= 1 and hits == 0 and writes == compiles and errors == 0
    assert counts(fresh_process.run(PROGRAM, **env))[:2] == [0, compiles]
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700

    for file in pathlib.Path(env["TORCH_TPU_CACHE_DIR"]).rglob("*"):  # damage every file
        if file.is_file():
            data = bytearray(file.read_bytes())
            data[len(data) // 2 :] = b"x" * (len(data) - len(data) // 2)
            file.write_bytes(data)
    again = counts(fresh_process.run(PROGRAM, **env))
    assert again[0] == compiles and again[1] == 0, "a damaged file is a miss"


def test_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    out = fresh_process.run(PROGRAM, TORCH_TPU_CACHE_DIR=str(tmp_path / "file" / "cache"))
    compiles, hits, writes, _ = counts(out)
    assert compiles >= 1 and hits == writes == 0
    assert "cache" in out.stderr


def test_off(tmp_path):
    out = fresh_process.run(
        PROGRAM, TORCH_TPU_CACHE="off", TORCH_TPU_CACHE_DIR=str(tmp_path / "cache")
    )
    assert counts(out)[1:] == [0, 0, 0] and not os.path.exists(tmp_path / "cache")


def test_full_disk(tmp_path):
    """No file may grow: every write fails, every program is compiled, every answer is right."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))\n"
    out = fresh_process.run(limit + PROGRAM, TORCH_TPU_CACHE_DIR=str(tmp_path / "cache"))
    compiles, hits, writes, errors = counts(out)
    assert compiles >= 1 and hits == writes == 0 and errors >= 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_folder_of_another_user(tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, 12345)
    out = fresh_process.run(PROGRAM, TORCH_TPU_CACHE_DIR=str(folder))
    assert counts(out)[1:3] == [0, 0] and list(folder.iterdir()) == []
    assert "cache is off" in out.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes into read-only folders")
def test_read_only_folder(tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o500)
    out = fresh_process.run(PROGRAM, TORCH_TPU_CACHE_DIR=str(folder))
    assert counts(out)[1:3] == [0, 0]


def test_dump_writes_each_program_with_its_call(tmp_path):
    dump = tmp_path / "programs"
    again = "assert (x + x).tolist() == [0.0, 2.0, 4.0, 6.0]\n"
    fresh_process.run(PROGRAM + again, TORCH_TPU_DUMP_DIR=str(dump))
    (file,) = dump.glob("*aten-add.Tensor.mlir")
    first, rest = file.read_text().split("\n", 1)
    assert first == "// aten::add.Tensor on float32[4], float32[4]"
    assert "stablehlo.add" in rest


def test_dump_that_cannot_be_written_costs_no_answer(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    out = fresh_process.run(PROGRAM, TORCH_TPU_DUMP_DIR=str(tmp_path / "file" / "dump"))
    assert counts(out)[3] >= 1
