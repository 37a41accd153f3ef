"""Element by element: unary, binary, compare, activation, special, copy."""

import torch

from .recorder import Host, aten, family, mod
from .values import INF, NAN, b8, bf16, c64, edges, f16, f32, f64, i8, i16, i32, i64, u8

F32, F64, F16, BF16 = torch.float32, torch.float64, torch.float16, torch.bfloat16

UNARY = {  # ulp of float32
    "abs": 0, "acos": 8, "acosh": 8, "asin": 8, "asinh": 8, "atan": 8, "atanh": 8, "ceil": 0,
    "cos": 8, "cosh": 8, "digamma": 16, "erf": 8, "erfc": 32, "erfinv": 16, "exp": 8, "exp2": 8,
    "expm1": 8, "floor": 0, "frac": 0, "lgamma": 32, "log": 8, "log10": 8, "log1p": 8, "log2": 8,
    "neg": 0, "reciprocal": 1, "round": 0, "rsqrt": 4, "sgn": 0, "sign": 0, "sin": 8, "sinc": 8,
    "sinh": 8, "sqrt": 1, "tan": 8, "tanh": 8, "trunc": 0, "angle": 0, "isinf": 0, "isnan": 0,
    "isneginf": 0, "isposinf": 0, "logical_not": 0, "signbit": 0, "nan_to_num": 0, "logit": 8,
    "special_i1e": 16,
}  # fmt: skip


@family
def unary(c):
    for name, ulp in UNARY.items():
        op = getattr(aten, name).default
        zero = name in ("tan", "sinc", "sgn", "special_i1e")
        c(f"{name}_edges", op, edges(), ulp=ulp, any_zero=zero, atol=1e-6 if ulp > 8 else 0)
    for name in ("exp", "sqrt", "sin", "tanh", "erf", "sigmoid"):
        op = getattr(aten, name).default
        c(f"{name}_int64", op, i64(-3, 0, 2, 7), ulp=8)
        c(f"{name}_bfloat16", op, edges(BF16), ulp=1)
    c("sqrt_float64", aten.sqrt.default, edges(F64), ulp=1)
    c("exp_float16_overflow", aten.exp.default, f16(-20, 0, 5, 11, 12, NAN), ulp=1)
    c("log1p_near_zero", aten.log1p.default, f32(1e-7, -1e-7, 1e-20, -0.5), ulp=4)
    c("expm1_near_zero", aten.expm1.default, f32(1e-7, -1e-7, 1e-20, -0.5), ulp=4)
    c("round_half_to_even", aten.round.default, f32(0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 8388609.0))
    c(
        "round_decimals",
        aten.round.decimals,
        f32(1.245, -1.255, 123.456, NAN, INF),
        decimals=1,
        ulp=1,
    )
    c("round_negative_decimals", aten.round.decimals, f32(123.0, 155.0, -145.0), decimals=-1, ulp=1)
    c("neg_int8_wraps", aten.neg.default, i8(-128, 127, 0))
    c("abs_int8_wraps", aten.abs.default, i8(-128, -127, 127))
    c("neg_uint8_wraps", aten.neg.default, u8(0, 1, 255))
    c("bitwise_not_int", aten.bitwise_not.default, i32(0, -1, 2147483647))
    c("bitwise_not_bool", aten.bitwise_not.default, b8(True, False))
    c("logical_not_int", aten.logical_not.default, i64(0, 3, -1))
    c("sgn_int", aten.sgn.default, i64(-7, 0, 9))
    c("nan_to_num_given", aten.nan_to_num.default, edges(), 7.0, 100.0, -100.0)
    c("nan_to_num_half", aten.nan_to_num.default, f16(NAN, INF, -INF, 1))
    c("logit_eps", aten.logit.default, f32(0.0, 0.05, 0.5, 1.0), 0.1, ulp=8)
    z = c64(1 + 2j, -3 + 4j, 0j, -1 - 1j)
    for name in ("abs", "angle", "exp", "sqrt", "log", "sin", "reciprocal", "neg", "sgn", "tanh"):
        c(f"{name}_complex", getattr(aten, name).default, z, rtol=3e-6, atol=1e-6, any_zero=True)
    c("conj_physical", aten._conj_physical.default, z)
    c("exp_of_conj_view", aten.exp.default, z.conj(), rtol=3e-6, any_zero=True)
    c("neg_of_neg_view", aten.neg.default, torch._neg_view(f32(1, -2, 0)))
    x = mod(F32, (3, 4), 5, 12, -6)
    c("abs_transposed", aten.abs.default, x.t())
    c("abs_offset_step", aten.abs.default, x[1:, ::3])
    c("abs_expanded", aten.abs.default, x[:1].expand(3, 4))
    c("abs_scalar_view", aten.abs.default, x[2, 1])
    c("abs_empty", aten.abs.default, x[:0])
    c("abs_windows", aten.abs.default, x.reshape(-1).unfold(0, 4, 3))
    c("neg_in_place_column", aten.neg_.default, mod(F32, (3, 4), 1, 12)[:, 1], row="aten::neg")
    c("neg_in_place_transposed", aten.neg_.default, mod(F32, (3, 4), 1, 12).t(), row="aten::neg")
    c("abs_out", aten.abs.out, f32(-1, 2), out=f32(0, 0), row="aten::abs")
    c("add_out_wider", aten.add.out, f32(-1, 2), f32(1, 1), out=f64(0, 0), row="aten::add.Tensor")
    c("sin_in_place_int", aten.sin_.default, i32(1, 2), row="aten::sin",
      error=("invalid argument", "can't be cast"))  # fmt: skip


def arithmetic(c):
    add, sub, mul, div = aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor
    x = mod(F32, (2, 3), 1, 6, 1)
    c("add_wrapped_number", add, x, 2.5)
    c("add_int_tensor_float_number", add, i32(1, 2), 0.5)
    c("add_alpha", add, x, x * 2, alpha=-0.5)
    c("add_alpha_int", add, i64(1, 2), i64(3, 4), alpha=3)
    c("add_broadcast", add, x, f32([10], [20]))
    c("add_zero_dim_keeps_type", add, f16(1, 2), f64(0.1))
    c("add_mixed", add, i64(1, 2), f32(0.5, 1.5))
    c("add_int8_wraps", add, i8(127, -128, 100), i8(1, -1, 100))
    c("add_bool", add, b8(True, True, False), b8(True, False, False))
    c("add_host_scalar", add, x, Host(3.0, F32))
    c("add_empty_broadcast", add, mod(F32, (0, 3), 1, 1), f32(1, 2, 3))
    c("add_edges", add, edges(), f32(-0.0), any_zero=False)
    c("add_inf", add, f32(INF, INF, -INF), f32(-INF, 1, -INF))
    c("add_complex", add, c64(1 + 2j, 3j), 1 - 1j)
    c("add_transposed", add, mod(F32, (3, 3), 1, 9), mod(F32, (3, 3), 1, 9).t())
    big = mod(BF16, (40, 25), 7, 64, -32)
    c("add_bfloat16_rounds", add, bf16(256, 1, 3), bf16(1, 0.00390625, 0.01171875))
    c("add_flat_and_big", add, big, 1.0)
    c("sub_uint8_wraps", sub, u8(0, 5), u8(1, 250))
    c("rsub", aten.rsub.Tensor, x, f32(1), alpha=2)
    c("mul_int64_wraps", mul, i64(4611686018427387904, -9223372036854775808), i64(2, -1))
    c("mul_zero_inf", mul, f32(0.0, -0.0, INF), f32(INF, 5, -2))
    c("mul_half_in_float", mul, f16(300, 0.0001), f16(300, 0.5))
    c("mul_conj", mul, c64(1 + 2j, 3 - 1j).conj(), c64(2j, 1 + 1j))
    c("div_int_gives_float", div, i32(7, -7, 1), i32(2, 2, 0))
    c("div_edges", div, f32(1, -1, 0, INF), f32(0.0, 0.0, 0.0, INF))
    signs = (7, -7, 7, -7, 6, -6), (3, 3, -3, -3, 3, 3)
    for mode in ("floor", "trunc"):
        c(
            f"div_{mode}_int",
            aten.div.Tensor_mode,
            i32(*signs[0]),
            i32(*signs[1]),
            rounding_mode=mode,
        )
        c(f"div_{mode}_float", aten.div.Tensor_mode, f32(*signs[0], 1, INF), f32(*signs[1], 0, 2),
          rounding_mode=mode)  # fmt: skip
    c("floor_divide_int8", aten.floor_divide.default, i8(*signs[0]), i8(*signs[1]))
    for name in ("remainder", "fmod"):
        op = getattr(aten, name).Tensor
        c(f"{name}_int", op, i64(*signs[0]), i64(*signs[1]))
        c(f"{name}_float", op, f32(*signs[0], 5.5, -5.5, INF), f32(*signs[1], INF, INF, 2))
        c(f"{name}_by_zero", op, f32(1, -1, 0), f32(0.0, 0.0, 0.0))
    c("remainder_scalar_self", aten.remainder.Scalar_Tensor, -7, i64(3, -3, 5))


def in_place(c):
    own = mod(F32, (3, 3), 1, 9)
    c("add_in_place_of_own_transpose", aten.add_.Tensor, own, mod(F32, (3, 3), 1, 9, 1),
      row="aten::add.Tensor")  # fmt: skip
    c("add_in_place_aliased", aten.add_.Tensor, own[:, 0], own[0], row="aten::add.Tensor")
    c("add_in_place_row", aten.add_.Tensor, own[1], 1, alpha=2, row="aten::add.Tensor")
    c("add_in_place_float_to_int", aten.add_.Tensor, i32(1, 2), f32(0.5, 0.5),
      row="aten::add.Tensor", error=("invalid argument", "can't be cast"))  # fmt: skip
    c("add_in_place_half", aten.add_.Tensor, f16(1, 2), f32(0.5, 2048), row="aten::add.Tensor")
    c(
        "add_in_place_dtype_view",
        aten.add_.Tensor,
        mod(torch.int64, (2,), 1, 2).view(torch.int32)[::2],
        i32(7, 8),
        row="aten::add.Tensor",
    )


def bits_and_logic(c):
    x, y = i32(12, -1, 7), i32(10, 255, -8)
    for name in ("and", "or", "xor"):
        c(f"bitwise_{name}", getattr(aten, f"bitwise_{name}").Tensor, x, y)
        c(
            f"bitwise_{name}_bool",
            getattr(aten, f"bitwise_{name}").Tensor,
            b8(True, False),
            b8(True),
        )
        c(f"logical_{name}", getattr(aten, f"logical_{name}").default, f32(0, NAN, 2), i32(0, 1, 0))
    c("shift_left", aten.bitwise_left_shift.Tensor, i32(1, -3, 5), i32(31, 2, 0))
    c("shift_right_arithmetic", aten.bitwise_right_shift.Tensor, i32(-8, 9, -1), i32(1, 2, 31))
    c("gcd", aten.gcd.default, i32(12, -18, 0, 7), i32(18, 12, 5, 0))
    c("lcm", aten.lcm.default, i32(4, -6, 0, 7), i32(6, 4, 5, 7))


def two_floats(c):
    a = f32(1, -1, 0.0, -0.0, INF, -INF, NAN, 2)
    b = f32(2, 3, -0.0, 0.0, 1, -INF, 1, NAN)
    for name in ("maximum", "minimum", "fmax", "fmin"):
        c(f"{name}_nan", getattr(aten, name).default, a, b, any_zero=True)
        c(f"{name}_int", getattr(aten, name).default, i8(-128, 5), i8(127, 4))
    for name, ulp in dict(
        atan2=8, hypot=4, copysign=0, nextafter=0, logaddexp=8, logaddexp2=8
    ).items():
        op = getattr(aten, name)
        op = op.Tensor if "Tensor" in op.overloads() else op.default
        nan_free = f32(1, -1, 0.5, -0.25, INF, -INF, NAN, 2), f32(2, 3, -8, 0.125, 1, -INF, 1, NAN)
        c(name, op, *nan_free, ulp=ulp, atol=1e-6 if ulp else 0)
    c("copysign_zeros", aten.copysign.Tensor, f32(1, 1, 0, 0), f32(0.0, -0.0, -1, NAN))
    c("heaviside", aten.heaviside.default, f32(-1, 0.0, -0.0, 2, NAN), f32(0.5))
    c("xlogy", aten.xlogy.Tensor, f32(0, 0, 2, NAN), f32(NAN, 0, 3, 0), ulp=4)
    c("complex", aten.complex.default, f32(1, -0.0), f32(NAN, 2))
    c("polar", aten.polar.default, f32(1, 2), f32(0.5, -1), rtol=1e-6)
    base = f32(2, -2, 0.0, -0.0, 1, INF, -INF, NAN)
    c("pow_tensors", aten.pow.Tensor_Tensor, base, f32(3, 3, -1, -1, NAN, -1, 3, 0), ulp=8)
    for exponent in (2, 3, 0.5, -1, 0, -0.5):
        c(f"pow_{exponent}", aten.pow.Tensor_Scalar, base, exponent, ulp=4)
    c("pow_int", aten.pow.Tensor_Scalar, i32(-2, 3, 0, 50000), 3)
    c("pow_int_tensors", aten.pow.Tensor_Tensor, i64(2, -1, 1, -1), i64(10, -1, -3, -2))
    c("pow_scalar_base", aten.pow.Scalar, 2, f32(-1, 0, 10.5), ulp=4)
    c("lerp_scalar", aten.lerp.Scalar, f32(1, 2, INF), f32(3, 6, 1), 0.25, ulp=1)
    c("lerp_tensor", aten.lerp.Tensor, f32(1, 2), f32(3, 6), f32(0.75, 0.5), ulp=1)
    c("addcmul", aten.addcmul.default, f32(1, 2), f32(3, 4), f32(5, 6), value=0.5)
    c("addcdiv", aten.addcdiv.default, f32(1, 2), f32(3, 4), f32(4, 0), value=2)
    c("clamp_nan", aten.clamp.default, edges(), -1, 2.0)
    c("clamp_crossed", aten.clamp.default, f32(0, 5, 9), 7, 3)
    c("clamp_int_by_float", aten.clamp.default, i32(-5, 5), -1.5, None)
    c("clamp_tensor", aten.clamp.Tensor, f32(1, NAN, 3), f32(2, 2, NAN), f32(2.5))
    c("clamp_min", aten.clamp_min.default, edges(), 0, any_zero=True)
    c("clamp_max_tensor", aten.clamp_max.Tensor, i64(1, 9), i64(5, 5))
    c("where", aten.where.self, b8(True, False, True), f32(1, 2, NAN), f64(9))
    c("where_broadcast", aten.where.self, b8([True], [False]), i32(1, 2, 3), i64(7))


@family
def binary(c):
    arithmetic(c)
    in_place(c)
    bits_and_logic(c)
    two_floats(c)


@family
def compare(c):
    a, b = f32(1, 2, 0.0, NAN, INF), f32(2, 1, -0.0, NAN, INF)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        c(f"{name}_edges", getattr(aten, name).Tensor, a, b)
        c(f"{name}_number", getattr(aten, name).Scalar, i32(1, 2, 3), 2)
    c("eq_complex", aten.eq.Tensor, c64(1 + 1j, 2), c64(1 + 1j, 2j))
    c("lt_mixed", aten.lt.Tensor, i64(1, 2), f32(1.5, 1.5))
    c("gt_int_float_number", aten.gt.Scalar, i32(1, 2, 3), 1.5)
    c("eq_bool", aten.eq.Tensor, b8(True, False), b8(True, True))
    c("le_uint8", aten.le.Tensor, u8(255, 1), u8(1, 255))
    c("ne_in_place", aten.ne_.Scalar, f32(1, 2, NAN), 2, row="aten::ne.Scalar")
    c("lt_out", aten.lt.Tensor_out, f32(1, 3), f32(2, 2), out=f32(7, 7), row="aten::lt.Tensor")
    c("eq_strided", aten.eq.Tensor, mod(F32, (4, 4), 3, 5).t()[::2], mod(F32, (2, 4), 3, 5))


@family
def activation(c):
    x, g = edges(), mod(F32, (12,), 5, 7, -3)
    for name in ("hardsigmoid", "hardswish", "mish", "silu", "relu", "sigmoid", "softplus", "elu",
                 "hardtanh", "leaky_relu", "hardshrink", "softshrink"):  # fmt: skip
        c(f"{name}_edges", getattr(aten, name).default, x, ulp=16, atol=1e-7, any_zero=True)

    # oneDNN's float32 kernel gives NaN for inf.
    def gelu(self, approximate="none"):
        return aten.gelu.default(self.double(), approximate=approximate).float()

    c(
        "gelu",
        aten.gelu.default,
        f32(0.0, 1, -1, -8, NAN, INF),
        ulp=16,
        atol=1e-6,
        any_zero=True,
        golden=gelu,
    )
    c("gelu_tanh", aten.gelu.default, f32(-8, -1, 0.5, NAN, INF), approximate="tanh",
      ulp=16, atol=1e-6, any_zero=True, golden=gelu)  # fmt: skip
    c("gelu_bfloat16", aten.gelu.default, bf16(-3, -1, 0.5, 2), ulp=2)
    c("elu_given", aten.elu.default, x, 0.5, 2.0, 3.0, ulp=8)
    c("softplus_threshold", aten.softplus.default, f32(1, 9, 11, -30), 2, 20, ulp=8)
    c("hardtanh_given", aten.hardtanh.default, x, -0.5, 0.25)
    c("threshold", aten.threshold.default, x, 0.5, 9)
    c("prelu", aten._prelu_kernel.default, x, f32(0.25))
    c("glu", aten.glu.default, mod(F32, (2, 6), 1, 12, -6), 1, ulp=8)
    c("glu_first_dim", aten.glu.default, mod(F32, (2, 3), 1, 6, -2), 0, ulp=8)
    y = f32(-2, -0.5, 0.0, 0.25, 1, 3)
    d = f32(1, 2, 3, -1, 0.5, 4)
    c("sigmoid_backward", aten.sigmoid_backward.default, d, torch.sigmoid(y), ulp=4)
    c("tanh_backward", aten.tanh_backward.default, d, torch.tanh(y), ulp=4)
    c("gelu_backward", aten.gelu_backward.default, d, y, ulp=32)
    c("gelu_tanh_backward", aten.gelu_backward.default, d, y, approximate="tanh", ulp=32, atol=1e-7)
    c("silu_backward", aten.silu_backward.default, d, y, ulp=16, atol=1e-7)
    c("mish_backward", aten.mish_backward.default, d, y, ulp=32, atol=1e-7)
    c("hardswish_backward", aten.hardswish_backward.default, d, y, ulp=2)
    c("hardsigmoid_backward", aten.hardsigmoid_backward.default, d, y, ulp=2, any_zero=True)
    c("hardtanh_backward", aten.hardtanh_backward.default, d, y, -1, 1)
    c("hardshrink_backward", aten.hardshrink_backward.default, d, y, 0.5)
    c("softshrink_backward", aten.softshrink_backward.default, d, y, 0.5)
    c("leaky_relu_backward", aten.leaky_relu_backward.default, d, y, 0.1, False, ulp=1)
    c("elu_backward", aten.elu_backward.default, d, 1.0, 1.0, 1.0, False, y, ulp=8)
    c("softplus_backward", aten.softplus_backward.default, d, y, 1, 20, ulp=8)
    c("threshold_backward", aten.threshold_backward.default, g, x, 0)
    c("log_sigmoid_forward", aten.log_sigmoid_forward.default, y, ulp=8, atol=1e-7, any_of=(1,))
    c("log_sigmoid_backward", aten.log_sigmoid_backward.default, d, y, y * 0, ulp=8,
      golden=lambda grad_output, self, buffer: grad_output * torch.sigmoid(-self))  # fmt: skip
    c("glu_backward", aten.glu_backward.default, f32([1, 2, 3]), y, 0, ulp=8)
    c("relu_in_place_strided", aten.relu_.default, mod(F32, (3, 4), 5, 12, -6)[:, ::2],
      row="aten::relu")  # fmt: skip


@family
def special(c):
    x = f32(0.125, 0.5, 1.0, 2.5, 7.0, 20.0)
    s = f32(-3.0, -0.5, 0.0, 0.5, 3.0, 12.0)
    for name in ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_i0",
                 "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1",
                 "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0",
                 "i0e", "i1", "entr", "erfcx", "log_ndtr", "ndtri"):  # fmt: skip
        v = f32(0.01, 0.3, 0.5, 0.75, 0.99, 0.0) if name == "ndtri" else x
        c(name, getattr(aten, f"special_{name}").default, v, rtol=1e-5, atol=2e-6)
    c("i0", aten.i0.default, s, rtol=3e-6)
    c("log_ndtr_negative", aten.special_log_ndtr.default, f32(-30, -5, -0.5), rtol=1e-5)
    c("entr_edges", aten.special_entr.default, f32(0.0, -1, INF, NAN, 1), any_zero=True)
    c("polygamma_1", aten.polygamma.default, 1, x, rtol=1e-5)
    c("polygamma_3", aten.polygamma.default, 3, x, rtol=1e-5)
    c("igamma", aten.igamma.default, f32(0.5, 1, 3, 10), f32(0.25, 1, 5, 8), rtol=2e-5)
    c("igammac", aten.igammac.default, f32(0.5, 1, 3, 10), f32(0.25, 1, 5, 8), rtol=2e-5)
    c("zeta", aten.special_zeta.default, f32(2, 3, 1, 1.5), f32(1, 0.5, 2, 4), rtol=1e-5)
    c("xlog1py", aten.special_xlog1py.default, f32(0, 0, 2), f32(NAN, -1, 3), ulp=4)
    c("logit_backward", aten.logit_backward.default, f32(1, 2, 3), f32(0.25, 0.5, 0.75), ulp=4)


@family
def copy(c):
    op, kw = aten.copy_.default, dict(row="aten::copy")
    c("float_to_int8_wraps", op, i8(0, 0, 0, 0), f32(1.9, -1.9, 200, -200), **kw)
    c("float_to_uint8_wraps", op, u8(0, 0, 0), f32(300, -1, 255.5), **kw)
    c("float_to_bool", op, b8(False, False, False, True), f32(0.5, NAN, -0.0, 0), **kw)
    c("float_to_half", op, f16(0, 0, 0, 0), f32(65504, 70000, 1e-3, NAN), **kw)
    c("float_to_bfloat16", op, bf16(0, 0, 0), f32(1.00390625, 1.01171875, 3e38), **kw)
    c("double_to_float", op, f32(0, 0), f64(1e300, 0.1), **kw)
    c("int64_to_int16", op, i16(0, 0), i64(65537, -32769), **kw)
    c("real_to_complex", op, c64(0, 0), f32(1.5, NAN), **kw)
    c("bool_to_float", op, f32(9, 9), b8(True, False), **kw)
    c("broadcast", op, mod(F32, (3, 2), 1, 6), f32(7, 8), **kw)
    c("into_transposed", op, mod(F32, (2, 3), 1, 6).t(), mod(F32, (3, 2), 5, 6, 10), **kw)
    c("into_steps", op, mod(F32, (10,), 1, 10)[1::3], f32(-1, -2, -3), **kw)
    c("into_conj", op, c64(0, 0).conj(), c64(1 + 2j, 3 - 4j), **kw)
    c("reads_bytes", op, u8([0] * 8), f32(1, -2).view(torch.uint8), **kw)
    c("self_overlap_fails", op, f32(0, 0).expand(3, 2), f32(1, 2), **kw,
      error=("invalid argument", "single memory location"))  # fmt: skip
