"""Numbers that a tensor's type can't hold: raised as on the CPU, whatever the tensor's size."""

import pytest
import torch

BIG = 2**32 + 1
INDEX = torch.tensor([0])
OPS = {
    "fill_": lambda x, v: x.fill_(v),
    "full_like": lambda x, v: torch.full_like(x, v),
    "masked_fill": lambda x, v: x.masked_fill(x > 0, v),
    "masked_fill_": lambda x, v: x.masked_fill_(x > 0, v),
    "index_fill": lambda x, v: x.index_fill(0, INDEX.to(x.device), v),
    "scatter": lambda x, v: x.scatter(0, INDEX.to(x.device), v),
    "pad": lambda x, v: torch.nn.functional.pad(x, (1, 1), value=v),
    "threshold": lambda x, v: torch.threshold(x, 2, v),
    "setitem": lambda x, v: x.__setitem__(0, v),
}
NUMBERS = [
    (torch.int32, BIG),
    (torch.int32, float("inf")),
    (torch.uint8, 300),
    (torch.int64, 2**62),
    (torch.float16, 1e6),
    (torch.float16, float("-inf")),
    (torch.bfloat16, 1e38),
    (torch.float32, 1e300),
]


# A negative integer of no greater size wraps. pad's value is a float by its schema: it doesn't.
WRAPS = [(name, torch.uint8, -255) for name in OPS if name != "pad"]
CASES = [(name, dtype, number) for name in OPS for dtype, number in NUMBERS] + WRAPS


@pytest.mark.parametrize("size", [4, 1 << 15], ids=["upload", "program"])
@pytest.mark.parametrize(("name", "dtype", "number"), CASES)
def test_a_number_fits_or_raises(name, dtype, number, size):
    results = []
    for device in ("cpu", "tpu"):
        x = torch.ones(size, dtype=dtype, device=device)
        try:
            out = OPS[name](x, number)
            results.append((x if out is None else out).cpu())
        except RuntimeError as error:
            results.append(str(error))
    want, got = results
    if isinstance(want, str):
        assert isinstance(got, str), f"the CPU: {want}"
        assert "without overflow" in got or "without overflow" not in want
    else:
        assert torch.equal(got, want)
