"""Products, factorizations, transforms, distances."""

import math

import torch

from .recorder import aten, family, mod
from .values import NAN, c64, f32, f64, i8, i32, i64

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16


@family
def matmul(c):
    a, b = mod(F32, (2, 3), 1, 6, -2), mod(F32, (3, 4), 5, 12, -4)
    c("mm", aten.mm.default, a, b)
    c("mm_transposed", aten.mm.default, b.t(), mod(F32, (2, 3), 1, 6).t())
    c("mm_int_wraps", aten.mm.default, i8([[100, 100]]), i8([2], [3]))
    c("mm_int64", aten.mm.default, i64([[1 << 40, 3]]), i64([5, 1], [7, 2]))
    c("mm_empty_inner", aten.mm.default, a[:, :0], b[:0])
    c("mm_half", aten.mm.default, mod(F16, (2, 512), 1, 3), mod(F16, (512, 1), 1, 2, 1), ulp=1)
    c("mm_nan", aten.mm.default, f32([[0, 1]]), f32([NAN], [2]))
    c("mm_conj", aten.mm.default, c64([[1 + 1j, 2]]).conj(), c64([1j], [3]))
    c(
        "mm_out_dtype",
        aten.mm.dtype,
        mod(BF16, (2, 3), 1, 6),
        mod(BF16, (3, 2), 1, 6),
        F32,
        golden=lambda self, mat2, out_dtype: self.to(out_dtype) @ mat2.to(out_dtype),
    )
    c("addmm", aten.addmm.default, f32(1, 2, 3, 4), a, b, beta=0.5, alpha=2)
    c("addmm_beta_zero_drops_nan", aten.addmm.default, f32(NAN), a, b, beta=0)
    c("addmm_relu", aten._addmm_activation.default, f32(1, 2, 3, -40), a, b)
    c(
        "int_mm",
        aten._int_mm.default,
        mod(torch.int8, (17, 8), 7, 100, -50),
        mod(torch.int8, (8, 8), 3, 90),
    )
    c("bmm", aten.bmm.default, mod(F32, (2, 2, 3), 1, 12), mod(F32, (2, 3, 2), 5, 12))
    c(
        "baddbmm",
        aten.baddbmm.default,
        f32(1),
        mod(F32, (2, 1, 3), 1, 6),
        mod(F32, (2, 3, 2), 1, 12),
        beta=2,
    )
    c("addbmm", aten.addbmm.default, f32(1), mod(F32, (2, 1, 3), 1, 6), mod(F32, (2, 3, 2), 1, 12))
    c("mv", aten.mv.default, a, f32(1, 0, -1))
    c("addmv", aten.addmv.default, f32(1, 1), a, f32(1, 0, -1), alpha=3)
    c("dot", aten.dot.default, f32(1, 2, 3), f32(4, 5, 6))
    c("vdot", aten.vdot.default, c64(1 + 2j, 1j), c64(3, 1j))
    c("addr", aten.addr.default, f32([0, 0], [1, 1]), f32(1, 2), f32(3, 4), alpha=0.5)
    c("dot_strided", aten.dot.default, mod(F32, (3, 4), 1, 12)[:, 1], f32(4, 5, 6))


@family
def grouped_matmul(c):
    a, b = mod(BF16, (4, 16), 5, 7, -3), mod(BF16, (2, 16, 8), 3, 5, -2)

    def rows(self, mat2, offs):
        parts = [self[:1].float() @ mat2[0].float(), self[1:].float() @ mat2[1].float()]
        return torch.cat(parts).bfloat16()

    c("rows_by_group", aten._grouped_mm.default, a, b, i32(1, 4), golden=rows)
    c(
        "empty_group",
        aten._grouped_mm.default,
        a,
        b,
        i32(0, 4),
        golden=lambda self, mat2, offs: (self.float() @ mat2[1].float()).bfloat16(),
    )


@family
def linalg(c):
    a = f64([4, 2, 0.5], [2, 5, 1], [0.5, 1, 3])
    tight = dict(rtol=1e-12, atol=1e-12)
    c("cholesky", aten.linalg_cholesky_ex.default, a, **tight)
    c(
        "cholesky_upper",
        aten.linalg_cholesky_ex.default,
        a.float(),
        upper=True,
        rtol=1e-6,
        atol=1e-6,
    )
    c("cholesky_indefinite", aten.linalg_cholesky_ex.default, f64([1, 2], [2, 1]), any_of=(0,))
    low = torch.linalg.cholesky(a).contiguous()
    b = f64([1, 2], [3, 4], [5, 6])
    c("solve_triangular", aten.linalg_solve_triangular.default, low, b, upper=False, **tight)
    c(
        "solve_triangular_right",
        aten.linalg_solve_triangular.default,
        low,
        b.t().contiguous(),
        upper=False,
        left=False,
        **tight,
    )
    c(
        "solve_triangular_unit",
        aten.linalg_solve_triangular.default,
        low,
        b,
        upper=False,
        unitriangular=True,
        **tight,
    )
    c("triangular_solve", aten.triangular_solve.default, b, low, False, True, **tight)
    c("cholesky_solve", aten._cholesky_solve_helper.default, b, low, False, **tight)
    c("cholesky_inverse", aten.cholesky_inverse.default, low, **tight)


@family
def linalg_lu(c):
    a = f64([0, 2, 1], [4, 1, 0], [2, 3, 5])
    tight = dict(rtol=1e-12, atol=1e-12, any_zero=True)
    c("inverse", aten.linalg_inv_ex.default, a, **tight)
    c("inverse_singular", aten.linalg_inv_ex.default, f64([1, 2], [2, 4]), any_of=(0,))
    c("lu_factor_pivots", aten.linalg_lu_factor_ex.default, a, **tight)
    c("lu", aten.linalg_lu.default, a, **tight)
    lu, p, _ = (t.contiguous() for t in aten.linalg_lu_factor_ex.default(a))
    b = f64([1, 2], [3, 4], [5, 6])
    c("lu_solve", aten.linalg_lu_solve.default, lu, p, b, **tight)
    c("lu_solve_adjoint", aten.linalg_lu_solve.default, lu, p, b, adjoint=True, **tight)
    c("lu_unpack", aten.lu_unpack.default, lu, p, **tight)


@family
def fft(c):
    x, z = mod(F32, (2, 4), 5, 8, -3), mod(torch.complex64, (2, 3), 5, 12, -4)
    tight = dict(rtol=2e-6, atol=2e-6, any_zero=True)
    c("real_half", aten._fft_r2c.default, x, [1], 0, True, **tight)
    c("real_full", aten._fft_r2c.default, x, [1], 1, False, **tight)
    c("real_two_dims", aten._fft_r2c.default, x, [0, 1], 2, True, **tight)
    c("complex_odd", aten._fft_c2c.default, z, [1], 0, True, **tight)
    c("complex_inverse", aten._fft_c2c.default, z, [0, 1], 2, False, **tight)
    c("back_to_real_odd", aten._fft_c2r.default, z, [1], 2, 5, **tight)
    c("complex_of_conj", aten._fft_c2c.default, z.conj(), [1], 0, True, **tight)


@family
def distance(c):
    a, b = mod(F32, (2, 3), 5, 6), mod(F32, (3, 3), 7, 9)
    for p in (1.0, 2.0, 0.0, math.inf, 3.0):
        c(f"cdist_{p}", aten._cdist_forward.default, a, b, p, None, ulp=8)
    c("cdist_empty", aten._cdist_forward.default, a[:0], b, 2.0, None)
    c("pdist", aten._pdist_forward.default, b, 2.0, ulp=4)
