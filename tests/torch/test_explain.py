"""Compiles explained and forbidden; modes by other spellings; the user's line in errors."""

import pytest
import torch
from fresh_process import run

import torch_tpu


def causes(records, op):
    return [r["cause"] for r in records if r["op"] == op]


def test_each_cause_is_named():
    torch_tpu.explain_compiles(clear=True)
    x = torch.ones(3, 5, device="tpu")
    x.roll(1, 0)
    x.roll(2, 0)
    torch.ones(3, 6, device="tpu").roll(1, 0)
    x.to(torch.float16).roll(1, 0)
    torch.ones(5, 3, device="tpu").t().roll(1, 0)
    records = torch_tpu.explain_compiles()
    first, *rest = causes(records, "aten::roll")
    assert first.startswith("new ")
    assert "constant" in rest[0] and "shifts=[2]" in rest[0] and "nearest" in rest[0]
    assert "shape" in rest[1] and "[3, 6]" in rest[1]
    assert "dtype" in rest[2] and "float16" in rest[2]
    assert "layout" in rest[3] and "strides [1, 3]" in rest[3]
    where = next(r for r in records if r["op"] == "aten::roll")["location"]
    assert where.startswith(__file__ + ":")
    text = str(records)
    assert "aten::roll(float32[3, 5])" in text and "compiled in" in text
    # A call that is known adds nothing.
    x.roll(1, 0)
    assert len(torch_tpu.explain_compiles()) == len(records)


def test_forbidden_compiles_raise_and_lose_nothing():
    done = run(
        """
        x = torch.ones(7, 3, device="tpu")
        y = x.flip(0)
        with torch_tpu.forbid_compiles():
            assert torch.equal(x.flip(0).cpu(), y.cpu())
            print(raised(x.flip, 1))
        assert x.flip(1).tolist() == [[1.0] * 3] * 7
        """,
        TORCH_TPU_CACHE="off",
    )
    assert "RuntimeError: compiling is forbidden here (forbid_compiles): aten::flip" in done.stdout
    assert "[7, 3]" in done.stdout and "new constant: dims=[1] (nearest: dims=[0])" in done.stdout


def test_forbidden_compiles_in_fuse_mode_keep_what_was_recorded():
    done = run(
        """
        x = torch.arange(11.0, device="tpu")
        with torch_tpu.eager_mode("fuse"):
            y = x.cumsum(0) * 3 + 1
            with torch_tpu.forbid_compiles():
                print(raised(y.cpu))
            assert y.tolist() == [v * (v + 1) / 2 * 3 + 1 for v in range(11)]
        """,
        TORCH_TPU_CACHE="off",
    )
    assert "RuntimeError: compiling is forbidden here" in done.stdout
    assert "new order of calls" in done.stdout


def test_hlo_is_the_program_of_a_function(counters):
    a, b = torch.ones(2, 3, device="tpu"), torch.ones(3, 4, device="tpu")
    counters.reset()
    text = torch_tpu.hlo(lambda a, b: torch.relu(a @ b), a, b)
    assert "stablehlo.dot_general" in text and "stablehlo.maximum" in text
    assert counters.launches == 0


def test_debug_errors_name_the_line():
    x, index = torch.ones(4, device="tpu"), torch.tensor([0, 9]).to("tpu")
    with torch_tpu.eager_mode("debug"), pytest.raises(IndexError) as error:
        x[index]
    text = str(error.value)
    assert "index 9 is out of bounds for dimension 0 with size 4" in text
    assert f"at {__file__}:" in text and "aten::index" in text


def test_modes_by_other_names():
    assert torch.tpu.EagerMode.FUSE.value == "fuse"
    with torch.tpu.eager_mode(torch.tpu.EagerMode.DEBUG):
        assert torch.tpu.get_eager_mode() == "debug"
    with pytest.raises(ValueError, match="strict, debug, fuse"):
        torch.tpu.set_eager_mode("lazy")


@pytest.mark.parametrize(
    ("variables", "mode"),
    [
        ({"TPU_LAUNCH_BLOCKING": "1"}, "debug"),
        ({"TPU_DEFER_AND_FUSE": "1"}, "fuse"),
        ({"TPU_DEFER_AND_FUSE": "0"}, "strict"),
        ({"TPU_DEFER_AND_FUSE": "1", "TORCH_TPU_EAGER_MODE": "debug"}, "debug"),
    ],
)
def test_modes_from_the_environment(variables, mode):
    assert run(
        "print(torch_tpu.get_eager_mode())", preamble="import torch_tpu\n", **variables
    ).stdout.split() == [mode]


def test_explain_prints_each_new_program():
    done = run(
        """
        torch.ones(3, device="tpu").roll(1)
        torch.tpu.synchronize()
        """,
        TORCH_TPU_EXPLAIN="on",
    )
    assert "torch_tpu: " in done.stderr and "aten::roll on float32[3]" in done.stderr
    assert "new operator" in done.stderr
