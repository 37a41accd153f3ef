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


# Numbers beside tensors count in the type that is computed in.
COMPUTED = {
    "add alpha": lambda x, v: torch.add(x, x, alpha=v),
    "sub alpha": lambda x, v: x.sub_(x, alpha=v),
    "rsub alpha": lambda x, v: torch.rsub(x, 1, alpha=v),
    "clamp max": lambda x, v: torch.clamp(x, max=v),
    "clamp_": lambda x, v: x.clamp_(min=v),
    "clamp_min": lambda x, v: torch.clamp_min(x, v),
    "addcmul": lambda x, v: torch.addcmul(x, x, x, value=v),
    "addr": lambda x, v: torch.addr(torch.ones_like(x).expand(4, 4), x, x, alpha=v),
    "scatter add": lambda x, v: x.scatter(0, INDEX.to(x.device), v, reduce="add"),
    "foreach": lambda x, v: torch._foreach_add([x], [x], alpha=v)[0],
    "mul": lambda x, v: x * v,  # wraps, as do all numbers in a tensor's place
    "where": lambda x, v: torch.where(x > 1, x, v),
    "searchsorted": lambda x, v: torch.searchsorted(x, v),
    "pow": lambda x, v: torch.pow(x, v),
}
COMPUTED_NUMBERS = [
    (torch.int32, BIG),
    (torch.int32, -BIG),
    (torch.int32, 2.5),
    (torch.int32, -2),
    (torch.uint8, 300),
    (torch.uint8, -1),
    (torch.float32, 1e300),
    (torch.float32, 1 + 2j),
]


@pytest.mark.parametrize(("dtype", "number"), COMPUTED_NUMBERS)
@pytest.mark.parametrize("name", COMPUTED)
def test_a_number_fits_the_type_computed_in(name, dtype, number):
    results = []
    for device in ("cpu", "tpu"):
        x = torch.tensor([1, 2, 3, 4], dtype=dtype, device=device)
        try:
            results.append(COMPUTED[name](x, number).cpu())
        except (RuntimeError, NotImplementedError) as error:
            results.append(str(error))
    want, got = results
    if isinstance(want, str):
        assert isinstance(got, str), f"the CPU: {want}"
        same = "without overflow" in got or "without overflow" not in want
        assert same or isinstance(number, complex)
    else:
        assert not isinstance(got, str), got
        assert got.dtype == want.dtype
        assert torch.equal(got, want)


@pytest.mark.parametrize("size", [4, 1 << 15], ids=["upload", "program"])
@pytest.mark.parametrize("name", ["fill_", "full_like", "masked_fill_", "scatter", "index_fill"])
def test_a_complex_number_needs_a_complex_tensor(name, size):
    for device in ("cpu", "tpu"):
        with pytest.raises(RuntimeError, match="cannot be converted|not supported"):
            OPS[name](torch.ones(size, device=device), 1 + 2j)
