"""PyTorch's operator database on tpu against the CPU with the fallback off: a few samples of every
entry in each check. An entry whose kernels are not all in the table is skipped by the table's own
word (NotImplementedError naming the missing kernel); nothing else is. All samples in all dtypes:
`make conformance`."""

import os

import pytest
import torch
from op_database import applies, entries, run_entry, verdict

pytestmark = pytest.mark.slow
ALL = bool(os.environ.get("TORCH_TPU_TEST_ALL"))
CASES = {  # (check, dtype): samples of an entry, and of how many entries one is taken
    ("forward", torch.float32): (6, 1),
    ("forward", torch.int64): (6, 1),
    ("backward", torch.float32): (6, 1),
    ("forward", torch.bfloat16): (1, 3),
    ("forward", torch.bool): (1, 3),
    ("forward", torch.complex64): (1, 3),
    ("inplace", torch.float32): (1, 3),
    ("out", torch.float32): (1, 3),
    ("fake", torch.float32): (1, 3),
    ("layouts", torch.float32): (1, 3),
    ("odd", torch.complex64): (1, 1),
    ("odd", torch.bool): (1, 1),
}


def cases():
    for (check, dtype), (samples, step) in CASES.items():
        for op in list(entries())[:: 1 if ALL else step]:
            if applies(op, dtype, check):
                name = f"{check}-{str(dtype).split('.')[1]}-{op.full_name}"
                yield pytest.param(op, dtype, check, None if ALL else samples, id=name)


@pytest.mark.parametrize(("op", "dtype", "check", "samples"), cases())
def test_op(op, dtype, check, samples):
    outcome, first = run_entry(op, dtype, check, samples)
    assert outcome["failed"] == 0, first[1]
    if outcome["missing"]:
        pytest.skip(first[1])
    if verdict(outcome) == "none":
        pytest.skip("no sample has a CPU result to compare with")


def test_database_is_whole():
    assert len(list(entries())) > 600
    assert sum(applies(op, torch.float32, "forward") for op in entries()) > 500
