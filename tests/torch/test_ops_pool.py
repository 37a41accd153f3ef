"""Pooling, unpooling and interpolation against the CPU."""

import math

import pytest
import torch
import torch.nn.functional as F
from oracle import check, check_raises


def draw(*shape, dtype=torch.float32, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)


POOLS = {
    "max2": (lambda x: F.max_pool2d(x, 2, return_indices=True), (2, 3, 6, 8)),
    "max3_overlapping": (lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), (2, 3, 7, 8)),
    "max_dilated_ceil": (
        lambda x: F.max_pool2d(x, (2, 3), (3, 2), 1, (2, 1), True, return_indices=True),
        (1, 2, 9, 8),
    ),
    "max_large": (lambda x: F.max_pool2d(x, 9, 3, 4, return_indices=True), (1, 2, 12, 12)),
    "max_1d": (lambda x: F.max_pool1d(x, 3, 2), (2, 3, 9)),
    "max_3d": (lambda x: F.max_pool3d(x, 2, return_indices=True), (1, 2, 4, 4, 6)),
    "avg2": (lambda x: F.avg_pool2d(x, 2), (2, 3, 6, 8)),
    "avg_padded": (lambda x: F.avg_pool2d(x, 3, 2, 1, True), (2, 3, 8, 7)),
    "avg_uncounted": (
        lambda x: F.avg_pool2d(x, 3, 2, 1, True, count_include_pad=False),
        (2, 3, 8, 7),
    ),
    "avg_divisor": (lambda x: F.avg_pool2d(x, (2, 3), 3, 1, divisor_override=5), (1, 2, 7, 8)),
    "avg_large": (lambda x: F.avg_pool2d(x, 9, 1, 4), (1, 2, 10, 10)),
    "avg_1d": (lambda x: F.avg_pool1d(x, 3, 2), (2, 3, 9)),
    "avg_3d": (lambda x: F.avg_pool3d(x, 2, 1), (1, 2, 4, 3, 5)),
    "adaptive_avg_even": (lambda x: F.adaptive_avg_pool2d(x, (3, 2)), (2, 3, 6, 8)),
    "adaptive_avg": (lambda x: F.adaptive_avg_pool2d(x, (3, 5)), (2, 3, 7, 8)),
    "adaptive_avg_one": (lambda x: F.adaptive_avg_pool2d(x, 1), (2, 3, 7, 8)),
    "adaptive_avg_3d": (lambda x: F.adaptive_avg_pool3d(x, (2, 3, 1)), (1, 2, 5, 6, 4)),
    "adaptive_max_even": (
        lambda x: F.adaptive_max_pool2d(x, (3, 2), return_indices=True),
        (2, 3, 6, 8),
    ),
    "adaptive_max": (lambda x: F.adaptive_max_pool2d(x, (3, 5), return_indices=True), (2, 3, 7, 8)),
    "adaptive_max_3d": (
        lambda x: F.adaptive_max_pool3d(x, (2, 3, 1), return_indices=True),
        (1, 2, 5, 6, 4),
    ),
}


@pytest.mark.parametrize("name", POOLS)
def test_pool(name, no_fallback):
    fn, shape = POOLS[name]
    check(fn, draw(*shape), grad=True)


@pytest.mark.parametrize("name", ["max3_overlapping", "max_large", "adaptive_max"])
def test_ties_and_special_values(name, no_fallback):
    fn, shape = POOLS[name]
    x = torch.randint(-2, 2, shape, generator=torch.Generator().manual_seed(0)).float()
    check(fn, x, grad=True)
    x.view(-1)[::5] = math.nan
    check(fn, x)
    check(fn, torch.full(shape, -math.inf))


def test_other_types_and_layouts(no_fallback):
    x = draw(2, 3, 6, 8)
    check(lambda x: F.max_pool2d(x, 2), x.bfloat16(), grad=True)
    check(lambda x: F.avg_pool2d(x, 2), x.bfloat16(), grad=True)
    check(lambda x: F.max_pool2d(x, 2), x.to(memory_format=torch.channels_last), grad=True)
    check(lambda x: F.max_pool2d(x, 2), x[0])
    check(lambda x: F.max_pool2d(x, 2), (x * 9).long())
    check(lambda x: F.max_pool2d(x, 2), torch.empty(0, 3, 6, 8), grad=True)


def test_unpool(no_fallback):
    x = draw(2, 3, 6, 8)
    pooled, index = F.max_pool2d(x, 2, return_indices=True)
    check(lambda p, i: F.max_unpool2d(p, i, 2), pooled, index)


def test_errors():
    check_raises(lambda x: F.max_pool2d(x, 9), draw(1, 2, 4, 4))
    check_raises(lambda x: F.max_pool2d(x, 2, padding=2), draw(1, 2, 4, 4))
    check_raises(lambda x: F.avg_pool2d(x, 2, divisor_override=0), draw(1, 2, 4, 4))


RESIZES = {
    "nearest": ({"mode": "nearest", "scale_factor": 2}, (1, 2, 3, 4)),
    "nearest_down": ({"mode": "nearest", "size": (3, 5)}, (1, 2, 7, 8)),
    "nearest_exact": ({"mode": "nearest-exact", "size": (5, 7)}, (1, 2, 3, 4)),
    "nearest_3d": ({"mode": "nearest", "scale_factor": 1.5}, (1, 2, 4, 3, 2)),
    "linear": ({"mode": "linear", "size": 7}, (1, 2, 4)),
    "bilinear": ({"mode": "bilinear", "scale_factor": 1.7}, (1, 2, 3, 4)),
    "bilinear_corners": ({"mode": "bilinear", "size": (5, 9), "align_corners": True}, (1, 2, 3, 4)),
    "bilinear_aa": ({"mode": "bilinear", "size": (3, 4), "antialias": True}, (1, 2, 8, 9)),
    "bicubic": ({"mode": "bicubic", "size": (5, 9)}, (1, 2, 3, 4)),
    "bicubic_aa": ({"mode": "bicubic", "size": (3, 4), "antialias": True}, (1, 2, 8, 9)),
    "trilinear": ({"mode": "trilinear", "scale_factor": 2}, (1, 2, 2, 3, 2)),
    "bilinear_far": ({"mode": "bilinear", "size": (40, 50)}, (1, 1, 2, 2)),
}


@pytest.mark.parametrize("name", RESIZES)
def test_interpolate(name, no_fallback):
    options, shape = RESIZES[name]
    check(lambda x: F.interpolate(x, **options), draw(*shape), grad=True)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_interpolate_bytes(mode, no_fallback):
    """To the bit: fixed point, rounded after each dimension."""
    g = torch.Generator().manual_seed(0)
    x = torch.randint(0, 256, (1, 3, 7, 9), generator=g, dtype=torch.uint8)
    for size in ((3, 4), (7, 20), (2, 9)):
        check(lambda x, s=size: F.interpolate(x, s, mode=mode), x)
        check(lambda x, s=size: F.interpolate(x, s, mode=mode, antialias=True), x)
    check(lambda x: F.interpolate(x, (5, 12), mode=mode, align_corners=True), x)
    check(lambda x: F.interpolate(x, scale_factor=(1.05, 1.7), mode=mode), x.expand(1, 3, 7, 9))
    shrunk = torch.randint(0, 256, (1, 1, 60, 4), generator=g, dtype=torch.uint8)
    check(lambda x: F.interpolate(x, (2, 4), mode=mode, antialias=True), shrunk)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample(mode, padding, no_fallback):
    x, grid = draw(2, 3, 4, 5), draw(2, 3, 4, 2, seed=1)
    for corners in (False, True):
        check(
            lambda x, g, c=corners: F.grid_sample(x, g, mode, padding, c),
            x,
            grid,
            grad=True,
            rtol=1e-4,
            atol=1e-4,
        )


@pytest.mark.parametrize("padding", ["border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_grid_sample_of_no_number(mode, padding):
    """It counts as outside, on the low side."""
    grid = torch.zeros(1, 2, 2, 2)
    grid[0, 0, 0, 0] = grid[0, 1, 1, 0] = grid[0, 1, 1, 1] = float("nan")
    grid[0, 0, 1, 1], grid[0, 1, 0, 0] = float("inf"), -float("inf")
    x = torch.arange(16.0).view(1, 1, 4, 4)
    check(lambda x, g: F.grid_sample(x, g, mode, padding, False), x, grid)



def test_grid_sample_3d(no_fallback):
    check(
        lambda x, g: F.grid_sample(x, g, align_corners=False),
        draw(1, 2, 3, 4, 5),
        draw(1, 2, 3, 2, 3, seed=1),
        grad=True,
        rtol=1e-4,
        atol=1e-4,
    )


def test_fractional(no_fallback):
    x = draw(2, 3, 9, 7)
    x[0, 0, 4, 4] = math.nan
    samples = torch.rand(2, 3, 2, generator=torch.Generator().manual_seed(0))
    for size in ((4, 3), (1, 1), 5):
        check(
            lambda x, s, o=size: F.fractional_max_pool2d_with_indices(
                x, (2, 3), output_size=o, _random_samples=s
            ),
            x,
            samples,
        )
    x = x.nan_to_num()
    check(
        lambda x, s: F.fractional_max_pool2d(x, 2, output_size=4, _random_samples=s.detach()),
        x,
        samples,
        grad=True,
    )
    check(
        lambda x, s: F.fractional_max_pool2d(x, 2, output_size=4, _random_samples=s),
        x[0],
        samples[:1],
    )
    cube, samples = draw(2, 2, 6, 5, 7), torch.rand(2, 2, 3)

    def cubes(x, samples):
        return F.fractional_max_pool3d(
            x, 2, output_size=(3, 2, 4), _random_samples=samples.detach()
        )

    check(cubes, cube, samples, grad=True)
