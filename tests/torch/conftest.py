"""What the tests of the PyTorch layer share: the device must exist, nothing may fall back to the
CPU unnoticed, every test has a time-out, and counters say which path ran."""

import faulthandler
import os
import sys

os.environ.setdefault("TORCH_TPU_FALLBACK", "error")
sys.path.insert(0, os.path.dirname(__file__))

import pytest  # noqa: E402
import torch  # noqa: E402

import torch_tpu  # noqa: E402

TIMEOUT_S = int(os.environ.get("TORCH_TPU_TEST_TIMEOUT", "300"))


class Counters:
    """Counts since the last reset: `counters.compiles`, `counters["fallback.aten::foo"]`."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._start = torch_tpu.counters()

    def __getitem__(self, name: str) -> int:
        return torch_tpu.counters().get(name, 0) - self._start.get(name, 0)

    def __getattr__(self, name: str) -> int:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]


@pytest.fixture(scope="session", autouse=True)
def device_exists():
    """A missing device fails every test: a comparison of the CPU with itself proves nothing."""
    assert torch.tpu.is_available(), "no tpu device"
    assert torch.ones(1).to("tpu").device.type == "tpu"


def pytest_runtest_setup(item: pytest.Item) -> None:
    mode = torch_tpu.get_eager_mode()
    if mode != "strict" and item.get_closest_marker("strict"):
        pytest.skip(f"strict mode only; this is {mode}")


@pytest.fixture(autouse=True)
def time_out():
    """Says where a hanging test hangs, and ends the run."""
    faulthandler.dump_traceback_later(TIMEOUT_S, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """An error that a test left on the device must not surface in the next one."""
    yield
    try:
        torch.tpu.synchronize()
    except Exception as error:  # noqa: BLE001
        pytest.fail(f"the test left an error on the device: {error}", pytrace=False)


@pytest.fixture
def counters() -> Counters:
    return Counters()


@pytest.fixture
def no_fallback(counters):
    """Fails the test if anything ran on the CPU."""
    yield counters
    assert counters.fallbacks == 0
