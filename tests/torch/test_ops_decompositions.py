"""QR, eigenvalues, singular values, least squares, LDL and the matrix exponential: by what they
promise (products, orthogonality, order) and against the CPU where the result is unique."""

import itertools

import pytest
import torch
from oracle import check, to_tpu

pytestmark = pytest.mark.usefixtures("no_fallback")

TYPES = [torch.float32, torch.float64, torch.complex128]
EPSILON = {torch.float32: 1.2e-7, torch.float64: 2.3e-16, torch.complex128: 2.3e-16}


def draw(*shape, dtype=torch.float64, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=g, dtype=dtype)


def largest(x):
    return x.abs().max().item()


def matrices(dtype, n=6):
    """Square matrices that are hard for something."""
    a = draw(n, n, dtype=dtype)
    q = torch.linalg.qr(a)[0]
    graded = torch.logspace(0, -12, n, dtype=torch.float64).to(dtype)
    return torch.stack([
        a, a[:, :2] @ a[:2, :], torch.ones_like(a), 2 * torch.eye(n, dtype=dtype),
        torch.zeros_like(a), a * 1e-25, a * 1e25, q @ torch.diag(graded) @ q.mH,
    ])  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_eigh(dtype):
    a = matrices(dtype)
    h = (a + a.mH) / 2
    values, vectors = (x.cpu() for x in torch.linalg.eigh(to_tpu(h)))
    bound = 60 * EPSILON[dtype]
    one = torch.eye(6, dtype=dtype)
    assert largest(vectors.mH @ vectors - one) < bound
    assert (values.diff(dim=-1) >= 0).all()
    for m, v, w, want in zip(h, values, vectors, torch.linalg.eigvalsh(h), strict=True):
        size = max(largest(m), 1e-30)
        assert largest(w * v.to(dtype) @ w.mH - m) < bound * size
        assert largest(v - want) < bound * size


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("rows, columns", [(6, 6), (6, 3), (3, 6)])
def test_svd(rows, columns, dtype):
    a = matrices(dtype)[:, :rows, :columns]
    u, values, v = (x.cpu() for x in torch.linalg.svd(to_tpu(a)))
    bound, k = 60 * EPSILON[dtype], min(rows, columns)
    assert u.shape[-1] == rows and v.shape[-1] == columns
    assert largest(u.mH @ u - torch.eye(rows, dtype=dtype)) < bound
    assert largest(v @ v.mH - torch.eye(columns, dtype=dtype)) < bound
    assert (values.diff(dim=-1) <= 0).all() and (values >= 0).all()
    product = u[..., :k] * values.to(dtype).unsqueeze(-2) @ v[..., :k, :]
    for m, p, s, want in zip(a, product, values, torch.linalg.svdvals(a), strict=True):
        size = max(largest(m), 1e-30)
        assert largest(p - m) < bound * size
        assert largest(s - want) < bound * size


def test_gradients():
    def of_eigen(a):
        values, vectors = torch.linalg.eigh(a + a.mH)
        return values, vectors.abs()

    def of_singular(a):
        u, s, v = torch.linalg.svd(a, full_matrices=False)
        return s, u @ v

    for a in (draw(2, 4, 4), draw(2, 4, 4, dtype=torch.complex128)):
        check(of_eigen, a, grad=True, strides=False)
        check(of_singular, a[..., :3], grad=True, strides=False)
        check(of_singular, a[:, :3], grad=True, strides=False)
    check(lambda a: torch.linalg.norm(a, "nuc", dim=(-2, -1)), draw(2, 4, 3), grad=True)
    check(torch.linalg.pinv, draw(4, 3), grad=True, strides=False)
    check(lambda a: torch.linalg.cond(a), draw(4, 4), grad=True)
    check(torch.linalg.matrix_rank, draw(5, 2) @ draw(2, 5))


def test_sizes_at_the_edge():
    for shape in ((0, 0), (2, 0, 3), (3, 0), (0, 3, 3), (1, 1), (1, 5), (5, 1)):
        a = draw(*shape)
        check(torch.linalg.svdvals, a)
        check(lambda a: tuple(x.abs() for x in torch.linalg.svd(a))[::2], a * 0, strides=False)
        for mode in ("reduced", "complete", "r"):
            check(lambda a, m=mode: torch.linalg.qr(a, mode=m), a)
        if shape[-1] == shape[-2]:
            check(torch.linalg.eigvalsh, a)
            check(lambda a: torch.linalg.eigh(a, UPLO="U")[0], a)


def test_eigh_reads_one_triangle():
    for a in (draw(3, 3), draw(3, 3, dtype=torch.complex128)):
        for side in ("L", "U"):
            check(lambda a, s=side: torch.linalg.eigvalsh(a, UPLO=s), a)


def test_not_finite():
    for bad in (float("nan"), float("inf")):
        a = draw(4, 4)
        a[1, 1] = bad
        assert torch.linalg.eigvalsh(a.to("tpu")).isnan().any()
        assert torch.linalg.svdvals(a.to("tpu")).isnan().any()


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_qr(dtype):
    close = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {}
    for a in (draw(2, 5, 3, dtype=dtype), draw(3, 5, dtype=dtype), draw(2, 4, 4, dtype=dtype).mT):
        check(torch.linalg.qr, a, grad=True, **close)
        check(lambda a: torch.linalg.qr(a, mode="complete"), a, **close)
        check(torch.geqrf, a, strides=False, **close)
    a = draw(5, 3, dtype=dtype) * (1e-25 if dtype == torch.float32 else 1e-200)
    check(lambda a: torch.linalg.qr(a).Q, a, **close)  # squares of it vanish


def test_reflectors():
    for dtype in (torch.float64, torch.complex128):
        a, tau = torch.geqrf(draw(2, 5, 3, dtype=dtype))
        check(torch.linalg.householder_product, a, tau, grad=True)
        for left, transpose in itertools.product((True, False), repeat=2):
            c = draw(2, 5, 4, dtype=dtype) if left else draw(2, 4, 5, dtype=dtype)
            check(torch.ormqr, a, tau, c, left=left, transpose=transpose)


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
def test_least_squares(driver):
    def solve(a, b):
        return tuple(torch.linalg.lstsq(a, b, driver=driver))

    for a, b in (((5, 3), (5, 2)), ((3, 5), (3, 2)), ((2, 5, 3), (2, 5, 2)), ((2, 5, 3), (2, 5))):
        check(solve, draw(*a), draw(*b, seed=1), strides=False)
    check(
        lambda a, b: torch.linalg.lstsq(a, b, driver=driver).solution,
        draw(5, 3),
        draw(5, 2, seed=1),
        grad=True,
        strides=False,
    )
    if driver != "gels":  # of the solutions of a singular system, the smallest
        a = draw(5, 2) @ draw(2, 4)
        check(
            lambda a, b: torch.linalg.lstsq(a, b, driver=driver)[::2],
            a,
            draw(5, 2, seed=1),
            strides=False,
        )


@pytest.mark.parametrize("hermitian", [False, True])
def test_ldl(hermitian):
    for dtype in (torch.float64, torch.complex128):
        a = draw(3, 6, 6, dtype=dtype)
        a = a + (a.mH if hermitian else a.mT)
        a[1].diagonal().zero_()  # blocks of two
        check(lambda a: torch.linalg.ldl_factor_ex(a, hermitian=hermitian), a)
        factor, pivots = torch.linalg.ldl_factor(a, hermitian=hermitian)
        assert (pivots < 0).any()
        check(
            lambda f, p, b: torch.linalg.ldl_solve(f, p, b, hermitian=hermitian),
            factor,
            pivots,
            draw(3, 6, 2, dtype=dtype),
        )


def test_matrix_exponential():
    for dtype in (torch.float32, torch.float64, torch.complex128):
        close = {"rtol": 1e-5, "atol": 1e-4} if dtype == torch.float32 else {"rtol": 1e-10}
        check(torch.linalg.matrix_exp, draw(3, 4, 4, dtype=dtype), grad=True, **close)
    a = draw(4, 4)
    a = (a - a.mT) * torch.tensor([0, 1e-9, 1, 100]).view(4, 1, 1)  # rotations
    check(torch.linalg.matrix_exp, a, atol=1e-9)
    check(torch.linalg.matrix_exp, torch.zeros(2, 0, 0))


def test_general_eigenvalues_come_from_the_host():
    check(torch.linalg.eigvals, draw(4, 4), grad=True)
    check(
        lambda a: torch.linalg.eigvals(
            a, out=torch.empty(0, dtype=torch.complex128, device=a.device)
        ),
        draw(3, 3),
    )
