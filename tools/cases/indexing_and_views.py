"""Indexing, scatters, views that copy, padding, embeddings, factories."""

import torch

from .recorder import aten, family, mod
from .values import NAN, b8, bf16, f16, f32, f64, i8, i32, i64, u8

F32, I64 = torch.float32, torch.int64


@family
def indexing(c):
    x = mod(F32, (4, 3), 1, 12)
    index, bounds = aten.index.Tensor, "out of range"
    c("index_wraps", index, x, [i64(0, -1, 2)])
    c("index_second_dim", index, x, [None, i64(2, -3)])
    c("index_two_broadcast", index, x, [i64([0], [3]), i64(1, 2)])
    c("index_int32", index, x, [i32(1, 1)])
    c("index_none_selected", index, x, [torch.zeros(0, dtype=I64)])
    c("index_apart", index, mod(F32, (2, 3, 2), 1, 12), [i64(0, 1), None, i64(1, 0)])
    c("index_transposed", index, x.t(), [i64(2, 0)])
    c(
        "index_out_of_range",
        index,
        x,
        [i64(0, 4)],
        error=(bounds, "index 4 is out of bounds for dimension 0"),
    )
    c("index_below_range", index, x, [None, i64(-4)], error=(bounds, "index -4 is out of bounds"))
    c("index_select", aten.index_select.default, x, 1, i64(2, 0, 2))
    c("index_select_offset", aten.index_select.default, x[1:, 1:], 0, i64(2, 0))
    c("gather", aten.gather.default, x, 1, i64([2, 0], [1, 1], [0, 2]))
    c("gather_first_dim", aten.gather.default, x, 0, i64([[3, 0, 1]]))
    c("gather_empty", aten.gather.default, x, 1, torch.zeros(4, 0, dtype=I64))
    c("gather_out_of_range", aten.gather.default, x, 1, i64([[3]]), error=(bounds, "index 3"))
    c("take_wraps", aten.take.default, x, i64([0, -1], [11, 5]))
    mask = b8([True, False, True])
    c("masked_fill", aten.masked_fill.Scalar, x, mask, -1)
    c("masked_fill_nan", aten.masked_fill.Scalar, x[:2], mask, NAN)
    c("masked_fill_tensor", aten.masked_fill.Tensor, x, mask, f32(7))
    c("masked_fill_in_place_view", aten.masked_fill_.Scalar, mod(F32, (4, 3), 1, 12)[::2], mask, 9,
      row="aten::masked_fill.Scalar")  # fmt: skip


@family
def scatter(c):
    def x():
        return mod(F32, (3, 4), 1, 12)

    i, src = i64([0, 1, 2, 0], [2, 2, 0, 1]), mod(F32, (2, 4), 3, 8, 20)
    c("scatter", aten.scatter.src, x(), 0, i, src)
    c("scatter_value", aten.scatter.value, x(), 1, i64([3], [0], [1]), -1)
    c("scatter_add_duplicates", aten.scatter_add.default, x(), 1, i64([[0, 0, 0, 3]]), src[:1])
    c("scatter_add_int_wraps", aten.scatter_add.default, i8(100, 0), 0, i64(0, 0), i8(100, 100))
    c(
        "scatter_multiply",
        aten.scatter.reduce,
        x(),
        1,
        i64([[1, 1]]),
        f32([[2, 3]]),
        reduce="multiply",
    )
    c("scatter_value_add", aten.scatter.value_reduce, x(), 1, i64([[1, 1]]), 5, reduce="add")
    for how in ("sum", "prod", "mean", "amax", "amin"):
        for own in (True, False):
            c(f"scatter_reduce_{how}_{own}", aten.scatter_reduce.two, f32(1, 2, 3), 0,
              i64(0, 0, 2, 0), f32(4, -1, 5, 3), how, include_self=own, ulp=1)  # fmt: skip
    c("scatter_amax_nan", aten.scatter_reduce.two, f32(1, 2), 0, i64(0, 1), f32(NAN, 5), "amax")
    c(
        "scatter_out_of_range",
        aten.scatter.value,
        x(),
        0,
        i64([[3]]),
        1,
        error=("out of range", "index 3"),
    )
    put = aten._index_put_impl_.default
    c("index_put", put, x(), [i64(0, 2)], src)
    c("index_put_wraps_negative", put, x(), [i64(-1)], f32(9))
    c("index_put_accumulates_duplicates", put, x(), [i64(1, 1, 1)], f32(1), True)
    c("index_put_two", put, x(), [i64(0, 2), i64(3, -4)], f32(50, 60))
    c("index_put_into_view", put, x().t()[1:], [i64(0)], f32(-1, -2, -3))
    c("index_put_none", put, x(), [None, i64(1)], f32(7))
    c("index_put_out_of_range", put, x(), [i64(5)], f32(1), error=("out of range", "index 5"))
    c("put_accumulate", aten.put_.default, x(), i64(0, -1, 0), f32(1, 2, 3), True)
    c("index_add_alpha", aten.index_add.default, x(), 1, i64(0, 0), mod(F32, (3, 2), 1, 6), alpha=2)
    c("index_add_in_place_rows", aten.index_add_.default, x()[:, ::2], 0, i64(2, 2),
      f32([1, 2], [3, 4]), row="aten::index_add")  # fmt: skip
    c("index_copy", aten.index_copy.default, x(), 0, i64(2, 0), src)
    c("index_fill", aten.index_fill.int_Scalar, x(), 1, i64(-1, 0), 7)
    c("index_fill_tensor", aten.index_fill.int_Tensor, x(), 0, i64(1), f32(8))
    for how in ("prod", "mean", "amax", "amin"):
        c(f"index_reduce_{how}", aten.index_reduce.default, f32(1, 2, 3), 0, i64(0, 0, 2),
          f32(4, -1, 5), how, ulp=1)  # fmt: skip
    c("unfold_backward", aten.unfold_backward.default, mod(F32, (3, 3), 1, 9), [5], 0, 3, 1)


@family
def view(c):
    x = mod(F32, (2, 3), 1, 6)
    c("cat", aten.cat.default, [x, x * 10], 1)
    c("cat_promotes", aten.cat.default, [i32(1, 2), f32([0.5])])
    c("cat_with_legacy_empty", aten.cat.default, [f32([]), x], 0)
    c("cat_of_views", aten.cat.default, [mod(F32, (3, 2), 1, 6).t(), x[:, 1:].expand(2, 2)], 1)
    c("stack", aten.stack.default, [x, -x], -1)
    c("flip", aten.flip.default, x, [0, 1])
    c("roll", aten.roll.default, x, [1, -1], [0, 1])
    c("roll_flat", aten.roll.default, x, [8])
    c("channel_shuffle", aten.channel_shuffle.default, mod(F32, (1, 4, 1, 2), 1, 8), 2)
    image = mod(F32, (1, 1, 3, 3), 1, 9, 1)
    c("im2col", aten.im2col.default, image, [2, 2], [1, 1], [1, 1], [2, 2])
    c(
        "col2im",
        aten.col2im.default,
        mod(F32, (1, 4, 4), 1, 16),
        [3, 3],
        [2, 2],
        [1, 1],
        [0, 0],
        [1, 1],
    )
    c("cross", aten.linalg_cross.default, f32([[1, 2, 3]]), f32([[4, 5, 7]]))


@family
def pad(c):
    x = mod(F32, (1, 2, 3), 1, 6, 1)
    c("constant", aten.constant_pad_nd.default, x, [1, 2, 0, 1], 7.5)
    c("constant_negative_crops", aten.constant_pad_nd.default, x, [-1, 1])
    c("constant_bool", aten.constant_pad_nd.default, b8([True]), [1, 1], True)
    c("reflection1d", aten.reflection_pad1d.default, x, [2, 1])
    c("reflection2d", aten.reflection_pad2d.default, x, [1, 1, 1, 0])
    c("replication1d", aten.replication_pad1d.default, x, [2, 1])
    c("replication3d", aten.replication_pad3d.default, x[None], [1, 0, 0, 1, 1, 0])
    g = mod(F32, (1, 2, 6), 1, 12, 1)
    c("reflection1d_backward", aten.reflection_pad1d_backward.default, g, x, [2, 1])
    c("replication1d_backward", aten.replication_pad1d_backward.default, g, x, [2, 1])


@family
def embedding(c):
    w = mod(F32, (4, 3), 1, 12)
    c("embedding", aten.embedding.default, w, i64([0, 3], [1, 1]))
    c(
        "embedding_out_of_range",
        aten.embedding.default,
        w,
        i64(4),
        error=("out of range", "index 4"),
    )
    g = mod(F32, (3, 3), 1, 9, 1)
    c("backward_duplicates", aten.embedding_dense_backward.default, g, i64(1, 1, 0), 4, -1, False)
    c("backward_padding", aten.embedding_dense_backward.default, g, i64(1, 1, 0), 4, 1, False)
    c("backward_by_frequency", aten.embedding_dense_backward.default, g, i64(1, 1, 0), 4, -1, True)
    c(
        "renorm",
        aten.embedding_renorm_.default,
        mod(F32, (4, 3), 1, 12),
        i64(3, 0, 3),
        2.0,
        2.0,
        ulp=4,
    )
    bag = aten._embedding_bag.default

    # The other results serve the gradient; their sizes off the CPU are those of the meta kernel.
    def bags(**kw):
        meta = bag(**{k: v.to("meta") if isinstance(v, torch.Tensor) else v for k, v in kw.items()})
        return bag(**kw)[0], *(torch.zeros(m.shape, dtype=m.dtype) for m in meta[1:])

    kw = dict(any_of=(1, 2, 3), golden=bags)
    for mode, name in enumerate(("sum", "mean", "max")):
        c(f"bag_{name}", bag, w, i64(0, 3, 1, 1), i64(0, 1), False, mode, ulp=1, **kw)
    c("bag_empty_bag", bag, w, i64(2, 3), i64(0, 0, 2), **kw)
    c("bag_weighted", bag, w, i64(2, 3), i64([0]), False, 0, False, f32(0.5, 2), **kw)


@family
def factory(c):
    def out(n, dtype=F32):
        return torch.zeros(n, dtype=dtype)

    c("arange", aten.arange.start_out, 1, 7, 2, out=out(3))
    c("arange_int", aten.arange.start_out, -3, 3, 2, out=out(3, I64))
    c("arange_float_step", aten.arange.start_out, 0, 1, 0.25, out=out(4))
    c("range", aten.range.out, 1, 2, 0.5, out=out(3))
    c("linspace", aten.linspace.out, -1, 1, 5, out=out(5))
    c("linspace_one", aten.linspace.out, 3, 9, 1, out=out(1))
    c("linspace_int", aten.linspace.out, 0, 10, 4, out=out(4, I64))
    c("logspace", aten.logspace.out, 0, 2, 3, out=out(3), ulp=8)
    c("eye", aten.eye.m_out, 2, 3, out=torch.zeros(2, 3))
    x = mod(F32, (3, 4), 1, 12, 1)
    c("tril", aten.tril.default, x, -1)
    c("triu", aten.triu.default, x, 1)
    c("triu_transposed_nan", aten.triu.default, f32([1, NAN], [NAN, 2]).t())
    c("tril_indices", aten.tril_indices.default, 3, 2, 0)
    c("triu_indices", aten.triu_indices.default, 2, 3, 1, dtype=torch.int32)
    c("fill_in_place_view", aten.fill_.Scalar, mod(F32, (3, 3), 1, 9)[1:, 1:], 2.5)
    c("fill_int_wraps", aten.fill_.Scalar, u8(1, 2), 7)
    c("fill_half_rounds", aten.fill_.Scalar, f16(1, 2), 0.1)
    c("fill_tensor", aten.fill_.Tensor, bf16(1, 2), f64(0.3))
    c("zero_column", aten.zero_.default, mod(F32, (3, 3), 1, 9, 1)[:, 2])
    c("zero_empty", aten.zero_.default, mod(F32, (3, 3), 1, 9, 1)[:, 3:])
