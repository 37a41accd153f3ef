"""The reports' tests use the fixtures and the oracle of tests/torch."""

import importlib.util
import pathlib
import sys

_torch_tests = pathlib.Path(__file__).parent.parent / "torch"
sys.path.insert(0, str(_torch_tests))
_spec = importlib.util.spec_from_file_location("torch_tests_conftest", _torch_tests / "conftest.py")
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
for _name in (
    "Counters",
    "pytest_runtest_setup",
    "device_exists",
    "time_out",
    "nothing_left_behind",
    "counters",
    "no_fallback",
):
    globals()[_name] = getattr(_module, _name)
