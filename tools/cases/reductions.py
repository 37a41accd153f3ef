"""Reductions, extrema, counting, scans, softmax, sorts."""

import torch

from .recorder import aten, family, mod
from .values import INF, NAN, b8, bf16, c64, f16, f32, f64, i8, i32, i64, u8

F32, F16, BF16, I64 = torch.float32, torch.float16, torch.bfloat16, torch.int64


@family
def reduce(c):
    x = mod(F32, (3, 4), 5, 12, -5)
    total = aten.sum.dim_IntList
    c("sum_rows", total, x, [1])
    c("sum_all", total, x, None)
    c("sum_keepdim_negative_dim", total, x, [-2], True)
    c("sum_transposed", total, x.t(), [0])
    c("sum_offset_steps", total, x[1:, ::2], [0])
    c("sum_expanded", total, x[:1].expand(5, 4), [0])
    c("sum_scalar", total, f32(3.5), None)
    c("sum_empty", total, x[:0], [0])
    c("sum_empty_kept", total, x[:0], [1])
    c("sum_nan_inf", total, f32([1, NAN], [INF, -INF], [INF, 1]), [1])
    c("sum_half_accumulates_in_float", total, mod(F16, (4096,), 1, 1, 20), None, dtype=F32)
    c("sum_half_overflows_once", total, f16(60000, 60000, -60000), None)
    c("sum_bfloat16", total, mod(BF16, (1000,), 1, 1, 1), None)
    c("sum_uint8_in_int64", total, u8(200, 100, 255), None)
    c("sum_bool", total, b8(True, True, False), None)
    c("sum_int_as_float", total, i32(1, 2), None, dtype=F32)
    c("sum_int8_given", total, i8(100, 100), None, dtype=torch.int8)
    c("sum_complex", total, c64(1 + 2j, 3 - 1j), None)
    c("sum_out", aten.sum.IntList_out, x, [0], out=torch.zeros(4), row="aten::sum.dim_IntList")
    c("mean", aten.mean.dim, x, [1])
    c("mean_half", aten.mean.dim, mod(F16, (4096,), 1, 1, 20), None)
    c("mean_empty", aten.mean.dim, x[:0], [0])
    c("prod", aten.prod.dim_int, x, 0)
    c("prod_int_wraps", aten.prod.dim_int, i64(4611686018427387904, 2, 3), 0)
    c("prod_empty", aten.prod.dim_int, x[:0], 0)
    c("nansum", aten.nansum.default, f32([1, NAN], [NAN, NAN]), [1])
    for name, op in dict(var=aten.var.correction, std=aten.std.correction).items():
        c(f"{name}", op, x, [1], ulp=4)
        c(f"{name}_population", op, x, [0], correction=0, ulp=4)
        c(f"{name}_of_one", op, f32([3.0]), [0])
        c(f"{name}_far_from_zero", op, mod(F32, (64,), 7, 16, 65536), None, ulp=8)
    c("var_mean", aten.var_mean.correction, x, [1], correction=2, ulp=4)
    c("std_mean_all", aten.std_mean.correction, x, None, ulp=4)
    c("all_rows", aten.all.dim, b8([True, True], [True, False]), 1)
    c("all_empty", aten.all.default, b8([]))
    c("all_float_nan", aten.all.default, f32(NAN, 1))
    c("all_uint8_keeps_type", aten.all.default, u8(1, 2))
    c("any_empty", aten.any.default, b8([]))
    c("any_rows", aten.any.dim, f32([0.0, -0.0], [0, NAN]), 1, True)
    c("any_dims", aten.any.dims, b8([[False, False]], [[False, True]]), [1, 2])
    c("count_nonzero", aten.count_nonzero.dim_IntList, f32([0, 1, NAN], [-0.0, 0, 2]), [1])
    c("logsumexp", aten.logsumexp.default, x * 20, [1], ulp=4)
    c("logsumexp_infinite", aten.logsumexp.default, f32([-INF, -INF], [INF, 1], [NAN, 1]), [1])
    for p in (2, 1, 0, INF, -INF, 3, 0.5):
        c(f"vector_norm_{p}", aten.linalg_vector_norm.default, x, p, [1], ulp=8)
    c("vector_norm_empty", aten.linalg_vector_norm.default, f32([]))
    c("norm_complex", aten.linalg_vector_norm.default, c64(3 + 4j, 0), ulp=2)
    c("norm", aten.norm.ScalarOpt_dim, x, 2, [0], ulp=4)
    c("norm_in_double", aten.norm.ScalarOpt_dim_dtype, x, 2, [0], False, dtype=torch.float64, ulp=4)
    c("trace", aten.trace.default, x)


@family
def extremum(c):
    x = f32([1, NAN, 3], [5, 5, -1], [INF, -INF, 0])
    for name in ("amax", "amin"):
        c(f"{name}_nan", getattr(aten, name).default, x, [1])
        c(f"{name}_all", getattr(aten, name).default, x[1:])
        c(f"{name}_int", getattr(aten, name).default, i8([-128, 127], [0, 1]), [0])
        big = mod(F32, (8192,), 31, 8192, -4096)
        c(f"{name}_long", getattr(aten, name).default, big, [0])
        big = big.clone()
        big[5000] = NAN
        view = torch.stack([big[4990:5010], big[:20]])
        c(f"{name}_nan_in_one_row", getattr(aten, name).default, view, [1])
    # Bit patterns: one in 512 is NaN, one inf.
    wide = mod(torch.int32, (2, 4096), 31, 512, 0, 4194304.0).view(F32)
    for name in ("amax", "amin"):
        c(f"{name}_nan_in_long_rows", getattr(aten, name).default, wide, [1])
    for name in ("max", "min"):
        op = getattr(aten, name)
        c(f"{name}_dim_nan_is_found", op.dim, x, 1)
        c(f"{name}_dim_first_of_equals", op.dim, f32([2, 7, 7, 2]), 0, True)
        c(f"{name}_all_nan", op.default, x)
        c(f"{name}_bool", op.default, b8(True, False))
        c(f"{name}_strided", op.dim, mod(F32, (4, 6), 5, 24).t()[1::2], 0)
        arg = getattr(aten, f"arg{name}").default
        c(f"arg{name}_flat", arg, f32([3, 1], [9, 1]))
        c(f"arg{name}_nan", arg, x, 1)
        c(f"arg{name}_first_of_equals", arg, i32([4, 4, 1, 1]), 0, True)
    c("aminmax", aten.aminmax.default, x, dim=0)
    c("aminmax_all", aten.aminmax.default, i64(4, -2, 9))


@family
def counting(c):
    c("histc", aten.histc.default, f32(0.5, 1, 1.5, 3.99, 4, 9, -1), 4, 0, 4)
    c("histc_own_range", aten.histc.default, f32(1, 2, 3, 4), 3)
    x, m = mod(F32, (2, 3), 1, 6), b8([True, False, True], [False, True, False])
    c("masked_scatter", aten.masked_scatter.default, x, m, f32(-1, -2, -3, -4))
    c("masked_scatter_broadcast", aten.masked_scatter.default, x, b8(True, False, True), -x)
    c(
        "nonzero_static",
        aten.nonzero_static.default,
        f32([0, 1, 0], [2, 0, NAN]),
        size=5,
        fill_value=-7,
    )
    c("nonzero_static_cut", aten.nonzero_static.default, i32(1, 0, 3, 4), size=2)


@family
def softmax(c):
    x = f32([1, 2, 3], [1000, 1000, -1000], [-INF, 0, 0], [NAN, 1, 2])
    rows = dict(ulp=8, atol=1e-7)
    c("softmax", aten._softmax.default, x, 1, False, **rows)
    c("softmax_first_dim", aten._softmax.default, x[:3], 0, False, **rows)
    c("softmax_all_masked", aten._softmax.default, f32([-INF, -INF]), 0, False)
    c("safe_softmax_all_masked", aten._safe_softmax.default, f32([-INF, -INF], [0, 0]), 1)
    c("softmax_bfloat16", aten._softmax.default, bf16(1, 2, 3), 0, False, ulp=1)
    c("softmax_strided", aten._softmax.default, mod(F32, (4, 3), 5, 12).t(), 1, False, **rows)
    c("softmax_empty", aten._softmax.default, x[:0], 1, False)
    c("log_softmax", aten._log_softmax.default, x, 1, False, **rows)
    c("log_softmax_scalar", aten._log_softmax.default, f32(3), 0, False, any_zero=True)
    y, g = torch.softmax(x[:2], 1), f32([1, 2, 3], [0.5, -1, 2])
    c("softmax_backward", aten._softmax_backward_data.default, g, y, 1, F32, **rows)
    c("log_softmax_backward", aten._log_softmax_backward_data.default, g, y.log(), 1, F32, **rows)


@family
def scan(c):
    x = mod(F32, (3, 4), 5, 12, -5)
    c("cumsum", aten.cumsum.default, x, 1)
    c("cumsum_first_dim_transposed", aten.cumsum.default, x.t(), 0)
    c("cumsum_uint8_in_int64", aten.cumsum.default, u8(200, 100, 7), 0)
    c("cumsum_nan_stays", aten.cumsum.default, f32(1, NAN, 2), 0)
    c("cumsum_half", aten.cumsum.default, mod(F16, (64,), 1, 1, 1), 0)
    c("cumsum_empty", aten.cumsum.default, x[:, :0], 1)
    c("cumsum_long", aten.cumsum.default, mod(I64, (300,), 7, 13), 0)
    c("cumprod", aten.cumprod.default, x, 1)
    c("cumprod_zero", aten.cumprod.default, f32(2, 0, INF, 3), 0)
    for name in ("cummax", "cummin"):
        op = getattr(aten, name).default
        c(f"{name}", op, f32([3, 1, 3, 2], [1, NAN, 0, 5]), 1)
        c(f"{name}_int", op, i64(3, 3, 1, 1, 4), 0)
    c("logcumsumexp", aten._logcumsumexp.default, f32(-INF, 0, 100, 1), 0, ulp=4)
    c("cumsum_in_place", aten.cumsum_.default, mod(F32, (3, 3), 1, 9)[:, 1], 0, row="aten::cumsum")


@family
def sort(c):
    x = f32([3, NAN, -1, 3], [0.0, -INF, INF, -0.0])
    c("sort", aten.sort.stable, x, stable=True)
    c("sort_descending", aten.sort.stable, x, stable=True, descending=True)
    c("sort_first_dim", aten.sort.stable, x, stable=True, dim=0)
    c("sort_int_stable", aten.sort.stable, i32(2, 1, 2, 1, 0), stable=True)
    c("sort_bool", aten.sort.stable, b8(True, False, True), stable=True)
    c("sort_scalar", aten.sort.stable, f32(4), stable=False)
    c("sort_empty", aten.sort.stable, f32([]), stable=False)
    c("sort_long", aten.sort.stable, mod(torch.int32, (200,), 77, 101), stable=True, dim=0)
    c("topk", aten.topk.default, f32(1, 7, NAN, 3), 2)
    c("topk_smallest", aten.topk.default, f32([4, 2, 9], [1, 8, 3]), 2, 1, False)
    c("topk_none", aten.topk.default, f32(1, 2), 0)
    c("kthvalue", aten.kthvalue.default, f32([4, 2, 9], [NAN, 8, 3]), 2)
    c("median", aten.median.default, f32(5, 1, 4, 2))
    c("median_nan", aten.median.default, f32(5, NAN, 4))
    c("nanmedian", aten.nanmedian.default, f32(5, NAN, 4, 1))
    c("median_dim", aten.median.dim, f32([5, 1, 4], [2, 9, NAN]), 1)
    c("nanmedian_dim", aten.nanmedian.dim, f32([5, 1, 4], [2, 9, NAN]), 1)
    c("mode", aten.mode.default, i32([2, 1, 2, 3], [5, 4, 4, 5]), any_of=(1,))
    edge = f32(1, 3, 3, 5)
    for right in (False, True):
        c(f"searchsorted_right_{right}", aten.searchsorted.Tensor, edge, f32(0, 3, 5, 6, NAN),
          right=right)  # fmt: skip
    c("searchsorted_int32", aten.searchsorted.Scalar, edge, 4, out_int32=True)
    c("bucketize", aten.bucketize.Tensor, f32([0, 1], [4, 9]), edge)
    c("bucketize_scalar", aten.bucketize.Scalar, 3, edge, right=True)
    c("isin", aten.isin.Tensor_Tensor, i64([1, 2], [3, 4]), i64(4, 1, 9))
    c("isin_inverted", aten.isin.Tensor_Scalar, f32(1, 2, NAN), 2, invert=True)
    c("isin_scalar", aten.isin.Scalar_Tensor, 2, f64(1, 2))
