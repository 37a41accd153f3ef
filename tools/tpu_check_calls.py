"""Calls that tools/tpu_check.py makes beside PyTorch's operator database: rows that the database
doesn't reach, and a few at sizes as in training.

Each is a function of a dtype; `CALLS` lists them with the dtypes they take.
"""

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


def long_vectors(dtype: str) -> None:
    t = _t(dtype, 100_000)
    t.sort()
    t.topk(10)
    t.cumsum(0)
    t.sum()
    t.argmax()
    i = torch.zeros(1000, dtype=torch.int64, device="tpu")
    t[i]
    t.index_add_(0, i, t[:1000].clone())
    t.scatter_(0, i, t[:1000].clone())


CALLS = {
    "optimizers": (optimizers, FLOATS),
    "fills": (fills, FLOATS),
    "integer_fills": (integer_fills, ("int64", "float32")),
    "products": (products, (*FLOATS, "int64", "complex64")),
    "network": (network, FLOATS),
    "long_vectors": (long_vectors, (*FLOATS, "int64")),
}
