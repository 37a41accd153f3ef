"""Factories, joins, padding and other operators that move elements."""

import pytest
import torch
import torch.nn.functional as F
from oracle import check, check_raises, layouts

pytestmark = pytest.mark.usefixtures("no_fallback")


def real(*shape: int, dtype=torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1)).to(dtype)


def on(device_of: torch.Tensor) -> dict:
    return {"device": device_of.device}


PLACE = torch.zeros(1)


def test_filled():
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64):
        check(
            lambda p, d=dtype: (
                torch.zeros(2, 3, dtype=d, **on(p)),
                torch.full((3,), 3, dtype=d, **on(p)),
            ),
            PLACE,
        )
    check(lambda t: t.fill_(2.5), real(2, 3))
    check(lambda t: t[:, 1].fill_(7), real(3, 4))
    check(lambda t, v: t.fill_(v), real(2, 3), torch.tensor(4.0))
    check(lambda t: t.t().zero_(), real(2, 3))


def test_ranges():
    check(
        lambda p: (torch.arange(5, **on(p)), torch.arange(0, **on(p)), torch.arange(7, **on(p))),
        PLACE,
    )
    check(
        lambda p: (torch.arange(2, 20, 3, **on(p)), torch.arange(0, 1, 0.1, **on(p))),
        PLACE,
        rtol=0,
        atol=0,
    )
    check(lambda p: torch.arange(5, 0, -2, dtype=torch.uint8, **on(p)), PLACE)
    check(lambda o: torch.arange(3, out=o), torch.empty(3))
    check(lambda o: torch.arange(3, 6, out=o), torch.empty(3))
    check(lambda o: torch.arange(5, out=o), torch.empty(3, dtype=torch.int64))
    check(lambda p: (torch.linspace(0, 1, 7, **on(p)), torch.linspace(3, -3, 1, **on(p))), PLACE)
    check(lambda p: torch.linspace(0, 10, 4, dtype=torch.int32, **on(p)), PLACE)
    check(lambda p: torch.linspace(50, 1, 50, dtype=torch.int64, **on(p)), PLACE)
    check(lambda p: torch.linspace(0.5, 10.7, 5, dtype=torch.int64, **on(p)), PLACE)
    check(lambda p: torch.logspace(0, 3, 4, **on(p)), PLACE)
    check(lambda p: torch.logspace(0, 3, 4, dtype=torch.int64, **on(p)), PLACE)
    check_raises(lambda p: torch.arange(0, 5, -1, **on(p)), PLACE)


def test_one_program_for_ranges_of_one_length(counters):
    torch.arange(3, 12, device="tpu").cpu()
    counters.reset()
    torch.arange(100, 109, device="tpu").cpu()
    assert counters.compiles == 0 and counters.disk_hits == 0


def test_triangles():
    check(lambda p: (torch.eye(3, **on(p)), torch.eye(2, 4, dtype=torch.int64, **on(p))), PLACE)
    check(lambda t: (t.tril(), t.triu(1), t.tril(-2)), real(2, 4, 5), grad=True)
    check(lambda t: t.tril_(), real(4, 4))
    for row, col, offset in ((4, 3, 0), (3, 5, -1), (5, 2, 1), (3, 3, -4)):
        check(
            lambda p, a=(row, col, offset): (
                torch.tril_indices(*a, **on(p)),
                torch.triu_indices(*a, **on(p)),
            ),
            PLACE,
        )


def test_joins():
    a, b = real(2, 3), real(2, 2)
    check(lambda x, y: torch.cat([x, y], 1), a, b, grad=True)
    check(lambda x, y: torch.cat([x, torch.empty(0, device=x.device), y], -1), a, b)
    check(lambda x, y: torch.cat([x, y], 1), a, b.to(torch.bfloat16))
    check(lambda x, o: torch.cat([x, x], out=o), a, torch.empty(4, 3))
    check(lambda x: torch.stack([x, x + 1], 1), a, grad=True)
    check(lambda x: torch.cat([x, x], 1), real(2, 3, 4, 4).to(memory_format=torch.channels_last))
    check_raises(lambda x, y: torch.cat([x, y], 0), a, b)


def test_moves():
    for x in layouts(real(3, 4)).values():
        check(lambda t: (t.flip(0), t.flip(0, 1), t.roll(1), t.roll((2, -1), (0, 1)), t.rot90()), x)
    check(lambda t: F.channel_shuffle(t, 2), real(1, 4, 2, 2))
    check(lambda t: F.pixel_shuffle(t, 2), real(1, 4, 2, 3), grad=True)
    check(lambda t: t.repeat(2, 1, 3), real(2, 3))


def test_cross():
    check(lambda a, b: torch.linalg.cross(a, b), real(4, 3), real(1, 3), grad=True)
    check(lambda a, b: torch.linalg.cross(a, b, dim=0), real(3, 2), real(3, 2))


PADDINGS = {
    "constant": [(1, 2), (1, 0, 0, 2), (-1, 1)],
    "reflect": [(1, 2), (2, 1), (0, 3), (1, 2, 3, 1)],
    "replicate": [(1, 2), (5, 0), (2, 1, 1, 4)],
    "circular": [(1, 2)],
}


@pytest.mark.parametrize("mode", PADDINGS)
def test_padding(mode):
    for pad in PADDINGS[mode]:
        x = real(2, 3, 5) if len(pad) == 2 else real(1, 2, 4, 5)
        check(lambda t, p=pad: F.pad(t, p, mode=mode), x, grad=True)


def test_padding_3d():
    for mode in ("reflect", "replicate"):
        check(
            lambda t, m=mode: F.pad(t, (1, 1, 0, 2, 1, 0), mode=m), real(1, 1, 3, 3, 4), grad=True
        )
    check_raises(lambda t: F.pad(t, (5, 5), mode="reflect"), real(1, 2, 3))


def test_windows():
    check(lambda t: t.unfold(1, 3, 2), real(2, 9), grad=True)
    check(lambda t: t.unfold(0, 40, 3), real(50), grad=True)  # scattered: many places
    check(lambda t: F.unfold(t, 3, padding=1, stride=2), real(2, 3, 6, 5), grad=True)
    check(lambda t: F.unfold(t, (2, 3), dilation=(2, 1)), real(3, 6, 5), grad=True)
    check(lambda t: F.fold(t, (4, 5), (2, 2), padding=1), real(1, 8, 30), grad=True)
