"""A clean exit, in any order and at any moment; little address space."""

import fresh_process
import pytest


@pytest.mark.parametrize(
    "ending",
    [
        # work in flight
        "x = torch.rand(999).to('tpu'); ys = [x[: 50 + i].exp() for i in range(6)]",
        "import atexit; x = torch.ones(2).to('tpu')\n"
        "atexit.register(lambda: print((x + x).tolist()))",
        "import builtins; builtins.kept = torch.ones(2).to('tpu')\n"
        "builtins.gen = torch.tpu.default_generators",
        "x = torch.ones(2).to('tpu'); e = torch.tpu.Event(); e.record(); sys.exit(0)",
    ],
    ids=["in_flight", "atexit", "kept_for_ever", "sys_exit"],
)
def test_exit(ending):
    out = fresh_process.run(ending, timeout=60, TORCH_TPU_CACHE="off")
    assert "Traceback" not in out.stderr and "terminate" not in out.stderr


def test_error_nobody_asked_for():
    """A bad index in a program that nobody waited for doesn't break the exit."""
    out = fresh_process.run(
        "t = torch.arange(3.0).to('tpu'); t.index_select(0, torch.tensor([9]).to('tpu'))",
        timeout=60,
    )
    assert out.returncode == 0


def test_little_address_space():
    """ulimit -v: the reservation for addresses shrinks instead of failing."""
    fresh_process.run(
        """
        x = torch.ones(4).to("tpu")
        assert (x + x).tolist() == [2.0] * 4
        """,
        preamble="import resource; resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))\n"
        + fresh_process.PREAMBLE,
    )
