"""Decompositions, triangular systems and Fourier transforms against the CPU."""

import pytest
import torch
from oracle import check, check_raises


def draw(*shape, dtype=torch.float64, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)


def positive(*batch, n=4, dtype=torch.float64):
    a = draw(*batch, n, n, dtype=dtype)
    return a @ a.mT + n * torch.eye(n, dtype=dtype)


@pytest.mark.parametrize("upper", [False, True])
def test_cholesky(upper, no_fallback):
    check(lambda a: torch.linalg.cholesky(a, upper=upper), positive(2), grad=True)
    check(lambda a: torch.linalg.cholesky_ex(a, upper=upper), positive(dtype=torch.float32))
    for cholesky in (torch.cholesky, torch.linalg.cholesky):  # they lay a new `out` differently
        check(lambda a, f=cholesky: f(a, upper=upper, out=torch.empty_like(a[:0])), positive(2))


def test_cholesky_of_no_such_matrix(no_fallback):
    bad = torch.diag(torch.tensor([1.0, 2.0, -1.0, 3.0]))
    check(lambda a: torch.linalg.cholesky_ex(a).info, bad)
    check_raises(torch.linalg.cholesky, bad)


def test_cholesky_solve_and_inverse(no_fallback):
    factor = torch.linalg.cholesky(positive(2))
    check(torch.cholesky_solve, draw(2, 4, 3), factor, grad=True)
    check(torch.cholesky_inverse, factor)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_solve_triangular(left, upper, no_fallback):
    a = positive(2)
    b = draw(4, 3) if left else draw(3, 4)
    for unit in (False, True):
        check(
            lambda a, b, u=unit: torch.linalg.solve_triangular(
                a, b, upper=upper, left=left, unitriangular=u
            ),
            a,
            b,
            grad=not unit,
        )


def test_lu(no_fallback):
    for shape in ((2, 4, 4), (5, 3), (3, 5)):
        check(torch.linalg.lu, draw(*shape))
        check(torch.linalg.lu_factor_ex, draw(*shape))
    check(lambda a: torch.linalg.lu_factor_ex(a).info, torch.zeros(3, 3))


def test_inverse(no_fallback):
    check(torch.linalg.inv, draw(2, 4, 4), grad=True)
    check_raises(torch.linalg.inv, torch.zeros(3, 3))


def test_lu_solve(no_fallback):
    lu, pivots = torch.linalg.lu_factor(draw(2, 4, 4))
    for left in (True, False):
        for adjoint in (True, False):
            b = draw(2, 4, 3) if left else draw(2, 3, 4)
            check(torch.linalg.lu_solve, lu, pivots, b, left=left, adjoint=adjoint)


def test_solve_and_determinants(no_fallback):
    a = draw(2, 4, 4)
    for matrix in (a, a.mT, a[:1].expand(3, 4, 4), torch.complex(a, a.mT)):
        check(torch.linalg.det, matrix, grad=True)
        check(torch.linalg.slogdet, matrix, grad=True)
        check(torch.linalg.solve, matrix, draw(4, 3).to(matrix.dtype), grad=True)
        check(
            lambda a, b: torch.linalg.solve(a, b, left=False),
            matrix,
            draw(5, 4).to(matrix.dtype),
            grad=True,
        )
    check(torch.linalg.solve, a, draw(2, 4), grad=True)  # a batch of vectors
    for empty in (torch.zeros(0, 3, 3), torch.zeros(2, 0, 0)):
        check(torch.linalg.det, empty)
        check(torch.linalg.slogdet, empty)
    check(torch.linalg.slogdet, torch.zeros(3, 3))
    check_raises(torch.linalg.solve, torch.zeros(3, 3), torch.ones(3))


@pytest.mark.parametrize("name", ["cholesky_ex", "inv_ex", "lu_factor_ex"])
def test_errors_where_asked_for(name, no_fallback):
    decompose = getattr(torch.linalg, name)
    for bad in (torch.zeros(3, 3), torch.zeros(2, 3, 3)):
        check_raises(lambda a: decompose(a, check_errors=True), bad)
        assert (decompose(bad.to("tpu")).info.cpu() == 1).all()
    check(lambda a: decompose(a, check_errors=True), torch.eye(3))


def test_old_cholesky(no_fallback):
    check(torch.cholesky, positive(2), grad=True)
    check_raises(torch.cholesky, torch.zeros(2, 2))


def test_fft(no_fallback):
    # Strides are those of the meta kernels, which differ from the CPU's where a dimension other
    # than the last is transformed.
    x = draw(3, 5, 6)
    for fn in (
        torch.fft.fft,
        torch.fft.rfftn,
        lambda x: torch.fft.irfft2(torch.fft.rfft2(x, norm="ortho"), s=(5, 6)),
        lambda x: torch.fft.ifft(torch.complex(x, x), dim=0),
        lambda x: torch.fft.hfft(torch.complex(x, x), n=7),
    ):
        check(fn, x, grad=True, strides=False)
