"""The folder of compiled programs: read-only, damaged, full, off. A bad folder costs time, no answer."""

import os
import pathlib

import fresh_process

PROGRAM = """
x = torch.arange(4.0).to("tpu")
assert (x + x).tolist() == [0.0, 2.0, 4.0, 6.0]
c = torch_tpu.counters()
print(c["compiles"], c["disk_hits"], c["disk_writes"], c["disk_errors"])
"""


def counts(out) -> list[int]:
    return [int(n) for n in out.stdout.split()]


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
    out = fresh_process.run(PROGRAM, TORCH_TPU_CACHE="off", TORCH_TPU_CACHE_DIR=str(tmp_path / "cache"))
    assert counts(out)[1:] == [0, 0, 0] and not os.path.exists(tmp_path / "cache")
