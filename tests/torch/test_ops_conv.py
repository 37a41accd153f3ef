"""Convolutions and their gradients against the CPU, with each of the special forms."""

import pytest
import torch
import torch.nn.functional as F
from oracle import check, check_raises, to_tpu


def draw(*shape, dtype=torch.float32, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)


CASES = {
    # name: (function, input, weight, bias, keywords)
    "1d": (F.conv1d, (2, 3, 9), (4, 3, 3), 4, {"stride": 2, "padding": 1}),
    "2d": (F.conv2d, (2, 3, 7, 8), (4, 3, 3, 3), 4, {"padding": 1}),
    "2d_stride_that_does_not_divide": (F.conv2d, (2, 3, 8, 9), (4, 3, 3, 2), None, {"stride": 3}),
    "2d_dilated": (F.conv2d, (1, 2, 9, 9), (3, 2, 3, 2), 3, {"dilation": (2, 3), "padding": 2}),
    "3d": (F.conv3d, (1, 2, 4, 5, 6), (3, 2, 2, 3, 2), 3, {"padding": (1, 0, 1)}),
    "grouped": (F.conv2d, (2, 4, 6, 6), (6, 2, 3, 3), 6, {"groups": 2, "padding": 1}),
    "depthwise": (
        F.conv2d,
        (2, 4, 7, 7),
        (4, 1, 3, 3),
        4,
        {"groups": 4, "padding": 1, "stride": 2},
    ),
    "depthwise_twice": (F.conv2d, (2, 4, 6, 6), (8, 1, 3, 3), 8, {"groups": 4, "padding": 1}),
    "pointwise": (F.conv2d, (1, 4, 6, 6), (5, 4, 1, 1), 5, {}),
    "patches": (F.conv2d, (2, 3, 9, 8), (5, 3, 4, 4), 5, {"stride": 4}),
    "transposed": (
        F.conv_transpose2d,
        (2, 3, 5, 4),
        (3, 4, 3, 3),
        4,
        {"stride": 2, "padding": 1, "output_padding": 1},
    ),
    "transposed_1d": (F.conv_transpose1d, (2, 3, 5), (3, 4, 3), 4, {"stride": 3, "dilation": 2}),
    "transposed_tiles": (F.conv_transpose2d, (2, 3, 4, 5), (3, 4, 2, 2), None, {"stride": 2}),
    "transposed_grouped": (F.conv_transpose2d, (2, 4, 5, 5), (4, 3, 3, 3), 6, {"groups": 2}),
    "transposed_cut": (
        F.conv_transpose2d,
        (1, 2, 5, 5),
        (2, 3, 2, 2),
        None,
        {"stride": 2, "padding": 1},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_convolution(name, no_fallback):
    fn, x, w, bias, options = CASES[name]
    operands = [draw(*x), draw(*w, seed=1)]
    if bias is not None:
        operands.append(draw(bias, seed=2))
    check(lambda *a: fn(*a, **options), *operands, grad=True, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_dtypes(dtype, no_fallback):
    check(
        lambda x, w, b: F.conv2d(x, w, b, padding=1),
        draw(2, 3, 6, 6, dtype=dtype),
        draw(4, 3, 3, 3, dtype=dtype),
        draw(4, dtype=dtype),
        rtol=2e-2,
        atol=2e-2,
    )


def test_integers(no_fallback):
    g = torch.Generator().manual_seed(0)
    x, w = (torch.randint(-9, 9, s, generator=g) for s in ((1, 2, 5, 5), (3, 2, 3, 3)))
    check(F.conv2d, x, w)


def test_channels_last_input(no_fallback):
    # PyTorch's meta kernel, which torch.compile believes too, makes the result contiguous here.
    x = draw(2, 3, 6, 6).to(memory_format=torch.channels_last)
    got = check(
        lambda x, w: F.conv2d(x, w, padding=1),
        x,
        draw(4, 3, 3, 3),
        grad=True,
        strides=False,
        rtol=1e-4,
        atol=1e-4,
    )
    assert got.is_contiguous()


def test_masks_of_the_backward(no_fallback):
    x, w, g = draw(2, 3, 6, 6), draw(4, 3, 3, 3), draw(2, 4, 6, 6)
    args = ([4], [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    want = torch.ops.aten.convolution_backward(g, x, w, *args, [True, True, True])
    for mask in ([True, False, False], [False, True, False], [False, False, True]):
        got = torch.ops.aten.convolution_backward(*(to_tpu(t) for t in (g, x, w)), *args, mask)
        for a, b, wanted in zip(got, want, mask, strict=True):
            assert (a is not None) == wanted
            if wanted:
                torch.testing.assert_close(a.cpu(), b, rtol=1e-4, atol=1e-4)


def test_second_derivative(no_fallback):
    def twice(x, w):
        (g,) = torch.autograd.grad(F.conv2d(x, w, padding=1).pow(2).sum(), x, create_graph=True)
        return g

    check(twice, draw(1, 2, 4, 4), draw(3, 2, 3, 3), grad=True, rtol=1e-3, atol=1e-3)


def test_unbatched_and_empty(no_fallback):
    check(F.conv2d, draw(3, 6, 6), draw(4, 3, 3, 3), rtol=1e-4, atol=1e-4)
    check(F.conv2d, torch.empty(0, 3, 6, 6), draw(4, 3, 3, 3), grad=True)


def test_errors():
    check_raises(F.conv2d, draw(1, 3, 6, 6), draw(4, 2, 3, 3))
    check_raises(F.conv2d, draw(1, 3, 2, 2), draw(4, 3, 3, 3))
    check_raises(F.conv2d, draw(1, 3, 6, 6), draw(4, 3, 3, 3, dtype=torch.float64))
