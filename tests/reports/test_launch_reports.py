"""Reports of section W: asking for a device before there are processes."""

import fresh_process

CHILD = """
import torch.multiprocessing as mp
assert torch.tpu.is_available() and torch.tpu.device_count() == 1
"""


def test_w1_asking_does_not_initialise():
    fresh_process.run(
        CHILD
        + """
assert not torch.tpu.is_initialized()
pid = os.fork()
if pid == 0:
    os._exit(0 if (torch.ones(2).to("tpu") + 1).tolist() == [2.0, 2.0] else 1)
assert os.waitpid(pid, 0)[1] == 0
"""
    )


def test_w2_a_forked_child_is_told():
    fresh_process.run(
        """
        x = torch.ones(2).to("tpu")
        pid = os.fork()
        if pid == 0:
            text = raised(lambda: torch.ones(2).to("tpu"))
            os._exit(0 if "fork" in text and "spawn" in text else 1)
        assert os.waitpid(pid, 0)[1] == 0
        """
    )


def test_w3_w5_spawn_one(tmp_path):
    script = tmp_path / "spawn_one.py"
    script.write_text(
        "import torch, torch_tpu\n"
        "def work(rank):\n"
        "    assert (torch.ones(2).to('tpu') + rank).tolist() == [1.0, 1.0]\n"
        "if __name__ == '__main__':\n"
        "    assert torch.tpu.is_available()\n"
        "    torch.multiprocessing.spawn(work, nprocs=1)\n"
    )
    import subprocess
    import sys

    assert subprocess.run([sys.executable, str(script)], timeout=120, check=False).returncode == 0


def test_w4_the_count_does_not_change():
    fresh_process.run(
        """
        before = torch.tpu.device_count()
        torch.ones(1).to("tpu")
        assert torch.tpu.device_count() == before == 1
        """
    )
