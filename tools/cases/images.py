"""Pooling, resampling, sampling at a grid."""

import torch

from .recorder import aten, family, mod
from .values import NAN, f32

F32 = torch.float32


@family
def pool(c):
    x = mod(F32, (1, 2, 4, 4), 13, 32, -9)
    c("max_pool2d", aten.max_pool2d_with_indices.default, x, [2, 2])
    c("max_pool2d_padded", aten.max_pool2d_with_indices.default, x, [3, 3], [2, 2], [1, 1])
    c(
        "max_pool2d_dilated_ceil",
        aten.max_pool2d_with_indices.default,
        x,
        [2, 2],
        [2, 2],
        [0, 0],
        [2, 2],
        True,
    )
    nan = x.clone()
    nan[0, 0, 1, 1] = NAN
    c("max_pool2d_nan", aten.max_pool2d_with_indices.default, nan, [2, 2])
    c(
        "max_pool3d",
        aten.max_pool3d_with_indices.default,
        mod(F32, (1, 1, 2, 2, 4), 5, 16),
        [2, 2, 2],
    )
    _, i = aten.max_pool2d_with_indices.default(x, [2, 2])
    g = mod(F32, (1, 2, 2, 2), 1, 8, 1)
    c(
        "max_pool2d_backward",
        aten.max_pool2d_with_indices_backward.default,
        g,
        x,
        [2, 2],
        [2, 2],
        [0, 0],
        [1, 1],
        False,
        i,
    )
    c("max_unpool2d", aten.max_unpool2d.default, g, i, [4, 4])
    c("adaptive_max_pool2d", aten.adaptive_max_pool2d.default, x, [3, 2])
    _, i = aten.adaptive_max_pool2d.default(x, [2, 2])
    c("adaptive_max_pool2d_backward", aten.adaptive_max_pool2d_backward.default, g, x, i)


@family
def pool_average(c):
    x = mod(F32, (1, 2, 4, 4), 13, 32, -9)
    g = mod(F32, (1, 2, 2, 2), 1, 8, 1)
    c("avg_pool2d", aten.avg_pool2d.default, x, [2, 2])
    c("avg_pool2d_padding_counts", aten.avg_pool2d.default, x, [3, 3], [2, 2], [1, 1], ulp=1)
    c(
        "avg_pool2d_padding_ignored",
        aten.avg_pool2d.default,
        x,
        [3, 3],
        [2, 2],
        [1, 1],
        False,
        False,
        ulp=1,
    )
    c(
        "avg_pool2d_ceil_divisor",
        aten.avg_pool2d.default,
        x,
        [3, 3],
        [2, 2],
        [0, 0],
        True,
        True,
        5,
        ulp=1,
    )
    c("avg_pool3d", aten.avg_pool3d.default, mod(F32, (1, 1, 2, 2, 4), 5, 16), [2, 2, 2])
    c(
        "avg_pool2d_backward",
        aten.avg_pool2d_backward.default,
        g,
        x,
        [2, 2],
        [2, 2],
        [0, 0],
        False,
        True,
        None,
    )
    c("adaptive_avg_pool2d", aten._adaptive_avg_pool2d.default, x, [3, 2], ulp=1)
    c("adaptive_avg_pool2d_backward", aten._adaptive_avg_pool2d_backward.default, g, x, ulp=1)


@family
def upsample(c):
    x = mod(F32, (1, 1, 2, 3), 5, 6)
    tight = dict(ulp=8, atol=1e-6)
    c("nearest1d", aten.upsample_nearest1d.default, x[0], [5])
    c("nearest2d", aten.upsample_nearest2d.default, x, [3, 5])
    c("nearest_exact2d", aten._upsample_nearest_exact2d.default, x, [3, 5])
    c("linear1d", aten.upsample_linear1d.default, x[0], [5], False, **tight)
    for corners in (False, True):
        c(f"bilinear2d_{corners}", aten.upsample_bilinear2d.default, x, [3, 4], corners, **tight)
        c(f"bicubic2d_{corners}", aten.upsample_bicubic2d.default, x, [3, 4], corners, **tight)
    c("bilinear2d_scale", aten.upsample_bilinear2d.default, x, [3, 4], False, 1.5, 1.4, **tight)
    c(
        "bilinear2d_antialias",
        aten._upsample_bilinear2d_aa.default,
        mod(F32, (1, 1, 4, 4), 5, 16),
        [2, 2],
        False,
        **tight,
    )
    c("trilinear3d", aten.upsample_trilinear3d.default, x[None], [2, 3, 4], True, **tight)
    c(
        "bilinear2d_backward",
        aten.upsample_bilinear2d_backward.default,
        mod(F32, (1, 1, 3, 4), 1, 12),
        [3, 4],
        [1, 1, 2, 3],
        False,
        **tight,
    )


@family
def grid_sample(c):
    x = mod(F32, (1, 1, 3, 3), 5, 9)
    grid = f32([[[-1, -1], [0.25, 0.5], [2, 0]], [[NAN, 0], [-0.3, 1.2], [1, 1]]])[None].view(
        1, 2, 3, 2
    )
    for mode, name in enumerate(("bilinear", "nearest", "bicubic")):
        for padding in range(3):
            finite = grid.nan_to_num(0.1)
            c(
                f"{name}_padding_{padding}",
                aten.grid_sampler_2d.default,
                x,
                finite,
                mode,
                padding,
                False,
                ulp=16,
                atol=1e-5,
            )
    c(
        "corners",
        aten.grid_sampler_2d.default,
        x,
        grid.nan_to_num(0.1),
        0,
        0,
        True,
        ulp=16,
        atol=1e-5,
    )
    c(
        "sampler_3d",
        aten.grid_sampler_3d.default,
        x[None],
        torch.zeros(1, 1, 1, 2, 3) + 0.25,
        0,
        0,
        False,
        ulp=16,
        atol=1e-5,
    )
    c(
        "backward",
        aten.grid_sampler_2d_backward.default,
        mod(F32, (1, 1, 2, 3), 1, 6),
        x,
        grid.nan_to_num(0.1),
        0,
        0,
        False,
        [True, True],
        ulp=16,
        atol=1e-5,
    )
