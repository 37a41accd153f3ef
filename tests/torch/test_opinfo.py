"""PyTorch's operator database: six samples of every op in float32 and int64, forward and
backward, on tpu against the CPU, with the fallback off. An op whose kernels are not all in the
table is skipped by the table's own word (NotImplementedError naming the missing kernel);
nothing else is."""

import os

import pytest
import torch
from opinfo_runner import DTYPES, ops, run_op

pytestmark = pytest.mark.slow
SAMPLES = None if os.environ.get("TORCH_TPU_TEST_ALL") else 6


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: str(d).split(".")[1])
@pytest.mark.parametrize("op", list(ops()), ids=lambda op: op.full_name)
def test_op(op, dtype):
    outcome, first = run_op(op, dtype, samples=SAMPLES)
    if not outcome:
        pytest.skip(f"the CPU has no {dtype} {op.full_name}")
    assert outcome["failed"] == 0, first[1]
    if set(outcome) == {"no reference"}:
        pytest.skip("no sample has a CPU result to compare with")
    if outcome["missing"]:
        pytest.skip(first[1])


def test_database_is_whole():
    assert len(list(ops())) > 600
    assert torch.float32 in DTYPES
