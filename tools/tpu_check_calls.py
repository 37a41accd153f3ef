"""Calls that tools/tpu_check.py makes beside PyTorch's operator database: rows that the database
doesn't reach, and a few at sizes as in training.

Each is a function of a dtype; `CALLS` lists them with the dtypes they take.
"""

import contextlib

import torch
import torch.nn.functional as F

FLOATS = ("float32", "bfloat16")
ALL = (*FLOATS, "int64", "bool")


def _t(dtype: str, *sizes: int) -> torch.Tensor:
    return (torch.rand(sizes) * 4).to(getattr(torch, dtype)).to("tpu")


def _grad(fn, *tensors: torch.Tensor) -> None:
    leaves = [t.requires_grad_() for t in tensors]
    out = fn(*leaves)
    out = out[0] if isinstance(out, tuple) else out
    out.backward(torch.ones_like(out))


def optimizers(dtype: str) -> None:
    o = torch.optim
    for make in (
        lambda p: o.SGD(p, lr=0.1, momentum=0.9, fused=True),
        lambda p: o.Adam(p, fused=True),
        lambda p: o.Adam(p, fused=True, amsgrad=True),
        lambda p: o.AdamW(p, fused=True),
        lambda p: o.Adagrad(p, fused=True),
        lambda p: o.AdamW(p, foreach=True),
        lambda p: o.Rprop(p, foreach=True),
    ):
        p = _t(dtype, 256, 128).requires_grad_()
        optimizer = make([p])
        for _ in range(2):
            p.grad = torch.ones_like(p)
            optimizer.step()


def fills(dtype: str) -> None:
    t = _t(dtype, 256, 128)
    t.normal_()
    t.uniform_()
    t.exponential_()
    t.cauchy_()
    t.log_normal_()
    t.geometric_(0.5)
    t.bernoulli_(0.5)
    t.bernoulli_(t.clamp(0, 1))
    torch.normal(t, t.abs())


def integer_fills(dtype: str) -> None:
    t = _t(dtype, 256, 128)
    t.random_()
    t.random_(7)
    t.random_(3, 9)
    torch.randperm(1000, device="tpu")


def products(dtype: str) -> None:
    a, b = _t(dtype, 1024, 512), _t(dtype, 512, 256)
    a @ b
    torch.bmm(a.view(8, 128, 512), b.expand(8, 512, 256))
    torch.addmm(_t(dtype, 256), a, b)
    a @ b[:, 0]


def network(dtype: str) -> None:
    x = _t(dtype, 8, 64, 56, 56)
    _grad(lambda x, w: F.conv2d(x, w, padding=1), x, _t(dtype, 64, 64, 3, 3))
    _grad(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), x, _t(dtype, 64), _t(dtype, 64))
    _grad(lambda x: F.max_pool2d(x, 2), x)
    _grad(lambda x: F.avg_pool2d(x, 2), x)
    h = _t(dtype, 4, 8, 128, 64)
    _grad(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), h, h.clone(), h.clone())
    t = _t(dtype, 512, 768)
    _grad(lambda x, w, b: F.layer_norm(x, (768,), w, b), t, _t(dtype, 768), _t(dtype, 768))
    _grad(lambda x: F.softmax(x, -1), t)
    _grad(F.gelu, t)
    target = torch.zeros(512, dtype=torch.int64, device="tpu")
    _grad(lambda x: F.cross_entropy(x, target), t)
    _grad(lambda w: F.embedding(target, w), t)


def sorts(dtype: str) -> None:
    for t, dim in ((_t(dtype, 100_000), 0), (_t(dtype, 64, 1000), 1), (_t(dtype, 1000, 64), 0)):
        t.sort(dim)
        t.topk(10, dim)
        t.kthvalue(10, dim)
        t.median(dim)
        t.mode(dim)
        t.cummax(dim)
        t.unique()
    torch.searchsorted(t.sort(0)[0].t(), t.t())
    torch.isin(t, t[0])


def scans(dtype: str) -> None:
    for t, dim in ((_t(dtype, 100_000), 0), (_t(dtype, 64, 1000), 1)):
        t.cumsum(dim)
        t.cumprod(dim)
        t.logcumsumexp(dim) if t.is_floating_point() else None
        t.sum(dim)
        t.prod(dim)
        t.argmax(dim)
        t.amax(dim)
        t.var(dim) if t.is_floating_point() else None


def indexing(dtype: str) -> None:
    t = _t(dtype, 10_000, 16)
    i = torch.zeros(1000, dtype=torch.int64, device="tpu")
    source = t[:1000].clone()
    t[i]
    t[i, i % 16]
    t.gather(0, i[:, None].expand(1000, 16))
    t.index_select(0, i)
    t[i] = source
    t.index_put_((i,), source, accumulate=True)
    t.index_add_(0, i, source)
    t.index_copy_(0, i, source)
    t.scatter_(0, i[:, None].expand(1000, 16), source)
    t.scatter_add_(0, i[:, None].expand(1000, 16), source)
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        t.scatter_reduce_(0, i[:, None].expand(1000, 16), source, reduce)
        t.index_reduce_(0, i, source, reduce) if reduce not in ("sum",) else None
    t.masked_select(t > 1)
    t.nonzero()
    t.masked_fill(t > 1, 2)


def pads(dtype: str) -> None:
    for rank, sizes in ((1, (2, 3, 8)), (2, (2, 3, 8, 8)), (3, (2, 3, 8, 8, 8))):
        for mode in ("reflect", "replicate"):
            _grad(lambda x, r=rank, m=mode: F.pad(x, (1, 2) * r, mode=m), _t(dtype, *sizes))


def cells(dtype: str) -> None:
    x, h = _t(dtype, 8, 16), _t(dtype, 8, 16)
    for make in (torch.nn.GRUCell, torch.nn.LSTMCell):
        cell = make(16, 16, device="tpu", dtype=x.dtype)
        state = (h, h) if make is torch.nn.LSTMCell else h
        _grad(lambda x, c=cell, s=state: c(x, s), x.detach())


def resampling(dtype: str) -> None:
    """What op_db's first samples miss."""
    a = torch.ops.aten
    image, volume = _t(dtype, 2, 3, 8, 8), _t(dtype, 2, 3, 8, 8, 8)
    for fn in (
        a._upsample_bicubic2d_aa, a._upsample_lanczos2d_aa, a._upsample_bilinear2d_aa,
        a.upsample_bicubic2d, a.upsample_bilinear2d,
    ):  # fmt: skip
        _grad(lambda x, f=fn: f(x, [12, 13], False), image.detach())
    for fn in (a._upsample_nearest_exact2d, a.upsample_nearest2d):
        _grad(lambda x, f=fn: f(x, [12, 13]), image.detach())
    for fn in (a._upsample_nearest_exact3d, a.upsample_nearest3d):
        _grad(lambda x, f=fn: f(x, [12, 13, 14]), volume.detach())
    _grad(lambda x: F.unfold(x, 3), image.detach())
    _grad(lambda x: F.fold(x, (8, 8), 3), _t(dtype, 2, 27, 36))
    _grad(lambda x: F.fractional_max_pool2d(x, 2, output_size=3), image.detach())
    _grad(lambda x: F.fractional_max_pool3d(x, 2, output_size=3), volume.detach())


def loops(dtype: str) -> None:
    t = _t(dtype, 256, 128) + 1
    torch.poisson(t)
    torch.binomial(t.floor(), t / 8)
    torch._standard_gamma(t)
    torch._sample_dirichlet(t)
    torch.normal(1.0, t)
    torch.multinomial(t, 8)


def rest(dtype: str) -> None:
    """Rows that nothing above reaches."""
    a = torch.ops.aten
    t, m = _t(dtype, 6, 8), torch.ones(6, 8, dtype=torch.bool, device="tpu")
    for call in (
        lambda: a.glu_jvp(t[:, :4].contiguous(), t, t, 1),
        lambda: a.glu_backward_jvp(t, t[:, :4].contiguous(), t, t[:, :4].contiguous(), t, 1),
        lambda: a.rrelu_with_noise_(t.clone(), t.clone(), 0.1, 0.3, True),
        lambda: a._masked_softmax(t, m, 1, 0),
        lambda: a._masked_softmax_backward(t, t, m, 1),
        lambda: t.clamp_max(2),
        lambda: torch.remainder(7, t),
        lambda: a.convolution_overrideable(
            _t(dtype, 2, 3, 8, 8), _t(dtype, 4, 3, 3, 3), None, [1, 1], [0, 0], [1, 1], False,
            [0, 0], 1),
        lambda: a.convolution_backward_overrideable(
            _t(dtype, 2, 4, 6, 6), _t(dtype, 2, 3, 8, 8), _t(dtype, 4, 3, 3, 3), [1, 1], [0, 0],
            [1, 1], False, [0, 0], 1, [True, True, True]),
        lambda: a.copy(t, t[0]),
        lambda: torch.nonzero_static(t, size=5),
        lambda: a._aminmax(t),
        lambda: a._aminmax.dim(t, 1),
        lambda: torch.eye(5, dtype=t.dtype, device="tpu"),
        lambda: t.fill_(torch.ones((), device="tpu")),
        lambda: torch.range(0, 7, dtype=t.dtype, device="tpu"),
        lambda: torch.tril_indices(4, 4, device="tpu"),
        lambda: torch.triu_indices(4, 4, device="tpu"),
        lambda: torch._assert_async(m.all()),
        lambda: torch._assert_async(m.all(), "words"),
        lambda: torch.unique(t, return_inverse=True, return_counts=True),
        lambda: torch.unique(t, dim=0),
        lambda: torch.unique_consecutive(t),
        lambda: torch.unique_consecutive(t, dim=0),
        lambda: a._unique(t),
        lambda: torch.bincount(t.long().flatten()),
        lambda: t.repeat_interleave(torch.ones(8, dtype=torch.int64, device="tpu")),
        lambda: torch.cholesky_inverse(torch.eye(4, dtype=t.dtype, device="tpu")),
        lambda: torch.cholesky_solve(t[:4], torch.eye(4, dtype=t.dtype, device="tpu")),
        lambda: a._addmm_activation(t[:, 0].clone(), t, t.t()),
        lambda: torch._int_mm(
            *(torch.ones(32, 32, dtype=torch.int8, device="tpu") for _ in range(2))),
        lambda: torch.mm(t, t.t(), out_dtype=torch.float32),
        lambda: torch.bmm(t[None], t.t()[None], out_dtype=torch.float32),
        lambda: a._native_batch_norm_legit.no_stats(t, None, None, True, 0.1, 1e-5),
        lambda: _grad(lambda v, g: a._weight_norm_interface(v, g, 0), t.clone(), t[:, :1].clone()),
        lambda: a._amp_foreach_non_finite_check_and_unscale_(
            [t.clone()], torch.zeros(1, device="tpu"), torch.ones(1, device="tpu")),
        lambda: a._amp_update_scale_(
            torch.ones(1, device="tpu"), torch.zeros(1, dtype=torch.int32, device="tpu"),
            torch.zeros(1, device="tpu"), 2.0, 0.5, 2000),
        lambda: a.norm.ScalarOpt_dim_dtype(t, 2.0, [1], False, dtype=torch.float32),
        lambda: a._standard_gamma_grad(t, t),
        lambda: a._dirichlet_grad(t, t, t),
        lambda: a.eye.out(5, out=t.clone()),
        lambda: a.__lshift__.Scalar(t, 2),
        lambda: a.__lshift__.Tensor(t, t),
        lambda: a.__rshift__.Scalar(t, 2),
        lambda: a.__rshift__.Tensor(t, t),
        lambda: a.__ilshift__.Scalar(t.clone(), 2),
        lambda: a.__ilshift__.Tensor(t.clone(), t),
        lambda: a.__irshift__.Scalar(t.clone(), 2),
        lambda: a.__irshift__.Tensor(t.clone(), t),
        lambda: a._logcumsumexp(t, 1),
        lambda: t.clone().scatter_(1, t.long() % 8, 2.0, reduce="multiply"),
        lambda: torch.bucketize(3.0, t[0].sort()[0]),
        lambda: torch.bucketize(t, t[0].sort()[0]),
        lambda: torch.searchsorted(t[0].sort()[0], 3.0),
        lambda: torch.isin(3, t),
        lambda: torch.isin(t, 3),
        lambda: F.embedding_bag(t.long() % 6, _t(dtype, 6, 4)),
        lambda: _grad(lambda w: F.embedding_bag(t.long() % 6, w), _t(dtype, 6, 4)),
        lambda: a._embedding_bag_dense_backward(
            _t(dtype, 6, 4), t.long().flatten() % 6, torch.arange(48, device="tpu") // 8,
            torch.full((6,), 8, device="tpu"), torch.zeros(6, 4, dtype=torch.int64, device="tpu"),
            6, False, 0, None),
        lambda: torch._grouped_mm(
            _t(dtype, 16, 16), _t(dtype, 2, 16, 16),
            offs=torch.tensor([8, 16], dtype=torch.int32, device="tpu")),
    ):  # fmt: skip
        with contextlib.suppress(Exception):  # not every dtype takes every call
            call()


def tensor_rates(dtype: str) -> None:
    o = torch.optim
    for kind in (o.SGD, o.Adam, o.AdamW, o.Adagrad):
        p = _t(dtype, 256, 128).requires_grad_()
        optimizer = kind([p], lr=torch.tensor(0.1, device="tpu"), fused=True)
        p.grad = torch.ones_like(p)
        optimizer.step()


CALLS = {
    "optimizers": (optimizers, FLOATS),
    "tensor_rates": (tensor_rates, FLOATS),
    "fills": (fills, FLOATS),
    "integer_fills": (integer_fills, ("int64", "float32")),
    "products": (products, (*FLOATS, "int64", "complex64")),
    "network": (network, FLOATS),
    "sorts": (sorts, (*FLOATS, "int64")),
    "scans": (scans, (*FLOATS, "int64")),
    "indexing": (indexing, (*FLOATS, "int64")),
    "pads": (pads, FLOATS),
    "cells": (cells, FLOATS),
    "resampling": (resampling, FLOATS),
    "loops": (loops, FLOATS),
    "rest": (rest, (*FLOATS, "int64")),
}
