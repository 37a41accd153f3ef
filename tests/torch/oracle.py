"""The oracle: run a function on the CPU and on tpu with equal inputs, and compare everything that
PyTorch promises: dtypes, sizes, strides, values, what was written to the inputs, and errors."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_flatten, tree_map

# (rtol, atol). Half types are compared with a float32-accumulating CPU result.
TOLERANCES = {
    torch.float64: (1e-9, 1e-9),
    torch.complex128: (1e-9, 1e-9),
    torch.float32: (2e-5, 2e-5),
    torch.complex64: (2e-5, 2e-5),
    torch.bfloat16: (1.6e-2, 1e-2),
    torch.float16: (2e-3, 2e-3),
}


def _moved(t: torch.Tensor, place: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """`t` over another storage, with the same strides, offset, lazy bits and storage size."""
    data = t.detach()
    conj, neg = data.is_conj(), data.is_neg()
    data = torch._conj(data) if conj else data  # without its bits
    data = torch._neg_view(data) if neg else data
    length = data.untyped_storage().nbytes() // data.element_size()
    base = place(torch.as_strided(data, (length,), (1,), 0))
    out = base.as_strided(data.size(), data.stride(), data.storage_offset())
    out = torch._neg_view(out) if neg else out
    out = torch._conj(out) if conj else out
    return out.detach().requires_grad_(t.requires_grad)


def to_tpu(t: torch.Tensor, device: str = "tpu") -> torch.Tensor:
    """`t` on tpu with the same strides, offset and storage size, as a leaf."""
    return _moved(t, lambda base: base.to(device))


def place(tree: Any) -> Any:
    """The tensors of `tree` on tpu, as leaves. One that it holds twice stays one."""
    placed = {}

    def one(x):
        if not _is_tensor(x):
            return x
        if id(x) not in placed:
            placed[id(x)] = to_tpu(x)
        return placed[id(x)]

    return tree_map(one, tree)


def _copied(t: torch.Tensor) -> torch.Tensor:
    return _moved(t, torch.Tensor.clone)


def _is_tensor(x: Any) -> bool:
    return isinstance(x, torch.Tensor)


def assert_same(got: Any, want: Any, *, rtol=None, atol=None, strides: bool = True, what="result"):
    """`got` (on tpu) equals `want` (on the CPU) in dtype, sizes, strides and values."""
    got_flat, got_spec = tree_flatten(got)
    want_flat, want_spec = tree_flatten(want)
    assert len(got_flat) == len(want_flat), f"{what}: {got_spec} against {want_spec}"
    for i, (g, w) in enumerate(zip(got_flat, want_flat, strict=True)):
        name = what if len(want_flat) == 1 else f"{what}[{i}]"
        if not _is_tensor(w):
            assert g == w or (g != g and w != w), f"{name}: {g} against {w}"
            continue
        assert _is_tensor(g), f"{name}: {g} is no tensor"
        assert g.device.type == "tpu", f"{name} is on {g.device}"
        assert g.dtype == w.dtype, f"{name}: {g.dtype} against {w.dtype}"
        assert g.shape == w.shape, f"{name}: {tuple(g.shape)} against {tuple(w.shape)}"
        if strides and w.numel() > 0:
            assert g.stride() == w.stride(), f"{name}: strides {g.stride()} against {w.stride()}"
        r, a = TOLERANCES.get(w.dtype, (0.0, 0.0))
        torch.testing.assert_close(
            g.detach().cpu().resolve_conj().resolve_neg(),
            w.detach().resolve_conj().resolve_neg(),
            rtol=r if rtol is None else rtol,
            atol=a if atol is None else atol,
            equal_nan=True,
            msg=lambda text, name=name: f"{name}: {text}",
        )


def check(
    fn: Callable[..., Any],
    *args: Any,
    grad: bool = False,
    rtol: float | None = None,
    atol: float | None = None,
    strides: bool = True,
    **kwargs: Any,
) -> Any:
    """Runs `fn` on CPU inputs and on their twins on tpu; compares the results, the inputs
    afterwards (in-place and out= forms), and with `grad` the gradients of the floating-point
    inputs.
    `fn` may make tensors of its own with `device=args[0].device`. Gives the result on tpu."""

    def prepare(place: Callable[[torch.Tensor], torch.Tensor]) -> tuple[Any, Any]:
        def one(x: Any) -> Any:
            if not _is_tensor(x):
                return x
            y = place(x)
            if grad and (y.is_floating_point() or y.is_complex()):
                y.requires_grad_(True)
            return y

        return tree_map(one, (args, kwargs))

    close = {"rtol": rtol, "atol": atol}
    cpu_args, cpu_kwargs = prepare(_copied)
    tpu_args, tpu_kwargs = prepare(to_tpu)
    want = fn(*cpu_args, **cpu_kwargs)
    got = fn(*tpu_args, **tpu_kwargs)
    assert_same(got, want, strides=strides, **close)
    assert_same((tpu_args, tpu_kwargs), (cpu_args, cpu_kwargs), what="input afterwards", **close)
    if grad:
        _check_gradients((got, tpu_args, tpu_kwargs), (want, cpu_args, cpu_kwargs), close)
    return got


def _check_gradients(got: Any, want: Any, close: dict) -> None:
    def gradients(tree: Any, seeds: list[torch.Tensor] | None) -> tuple[list, list]:
        result, args, kwargs = tree
        outputs = [t for t in tree_flatten(result)[0] if _is_tensor(t) and t.requires_grad]
        inputs = [t for t in tree_flatten((args, kwargs))[0] if _is_tensor(t) and t.requires_grad]
        if seeds is None:  # drawn once, on the CPU
            g = torch.Generator().manual_seed(0)
            seeds = [
                torch.randn(o.shape, generator=g, dtype=torch.float64).to(o.dtype) for o in outputs
            ]
        placed = [s.to(o.device) for s, o in zip(seeds, outputs, strict=True)]
        return seeds, torch.autograd.grad(outputs, inputs, placed, allow_unused=True)

    seeds, cpu = gradients(want, None)
    _, tpu = gradients(got, seeds)
    for i, (g, w) in enumerate(zip(tpu, cpu, strict=True)):
        if w is None:
            assert g is None or not g.any(), f"gradient {i}: CPU has none"
            continue
        assert g is not None, f"gradient {i} is missing"
        assert_same(g, w, strides=False, what=f"gradient {i}", **close)


def check_raises(
    fn: Callable[..., Any], *args: Any, match: str | None = None, **kwargs: Any
) -> None:
    """`fn` raises on tpu what it raises on the CPU (or a subclass), at the latest when the device
    is waited for."""
    with pytest.raises(Exception) as cpu:  # noqa: PT011
        fn(*tree_map(lambda x: _copied(x) if _is_tensor(x) else x, args), **kwargs)
    with pytest.raises(type(cpu.value), match=match):
        fn(*tree_map(lambda x: to_tpu(x) if _is_tensor(x) else x, args), **kwargs)
        torch.tpu.synchronize()


def layouts(t: torch.Tensor) -> dict[str, torch.Tensor]:
    """The tensor `t` in the layouts every operator must take: same sizes and values."""
    out = {"contiguous": t.contiguous()}
    if t.dim() >= 2:
        order = list(reversed(range(t.dim())))
        out["transposed"] = t.permute(order).contiguous().permute(order)
    if t.dim() >= 1:
        wide = torch.zeros([2 * s + 1 for s in t.shape], dtype=t.dtype)
        inner = wide[tuple(slice(1, None, 2) for _ in t.shape)]
        inner.copy_(t)
        out["sliced"] = inner
    return out


def expanded(t: torch.Tensor, n: int = 3) -> torch.Tensor:
    """`t` with a leading stride-0 dimension of `n`."""
    return t.unsqueeze(0).expand(n, *t.shape)
