"""PyTorch's operator database (op_db) on tpu against the CPU, one (op, dtype, check) at a time.

Checks: forward, backward, inplace, out, fake (metadata of fake tensors), layouts (every operand in
layouts of other kinds), odd (operands of types that the operator may not know). Used by
test_opinfo.py and tools/conformance.py. The fallback is off.
"""

import collections
import contextlib
import functools
import itertools
import os
import warnings

os.environ["TORCH_TPU_FALLBACK"] = "error"  # else the CPU would be compared with itself

import torch
from op_exceptions import (
    CPU_INEXACT,
    HOST_OPERANDS,
    NO_VALUES,
    NOT_DENSE,
    OWN_STRIDES,
    TIES,
    tolerance,
)
from oracle import TOLERANCES, assert_same, layouts, place
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

import torch_tpu  # noqa: F401

CHECKS = ("forward", "backward", "inplace", "out", "fake", "layouts", "odd")
WIDER = {torch.float32: torch.float64, torch.complex64: torch.complex128,
         torch.bfloat16: torch.float32, torch.float16: torch.float32}  # fmt: skip


class NoReferenceError(Exception):
    """The CPU itself refuses the sample."""


def entries(names=()):
    """The dense entries of op_db, or those named."""
    for op in op_db:
        if names and op.name not in names and op.full_name not in names:
            continue
        if op.name not in NOT_DENSE:
            yield op


def applies(op, dtype, check):
    """Whether op_db says that the CPU does this."""
    if check == "odd":
        return torch.float32 in op.supported_dtypes("cpu")
    if dtype not in op.supported_dtypes("cpu"):
        return False
    if check == "backward":
        return dtype in op.supported_backward_dtypes("cpu")
    if check == "inplace":
        return op.get_inplace() is not None
    if check == "out":
        return op.supports_out
    return True


def _is_tensor(x):
    return isinstance(x, torch.Tensor)


class Call:
    """One sample of an entry: what to run, and its operands on the CPU."""

    def __init__(self, op, sample):
        self.op, self.sample = op, sample
        self.operands = (sample.input, list(sample.args), dict(sample.kwargs))
        self.random = op.name in NO_VALUES or (sample.kwargs.get("dropout_p") or 0) > 0

    def place(self):
        """The operands on tpu."""

        def one(x):
            return torch.device("tpu") if not _is_tensor(x) and str(x) == "cpu" else x

        first, args, kwargs = self.operands
        if self.op.name in HOST_OPERANDS:
            return place(first), args, kwargs
        tensors = any(map(_is_tensor, tree_leaves((first, args, kwargs))))
        if not tensors and self.op.name != "broadcast_shapes":
            kwargs = {**kwargs, "device": "tpu"}  # a factory
        return place(tree_map(one, (first, args, kwargs)))

    def run(self, fn, operands, **more):
        first, args, kwargs = operands
        with torch.device("tpu") if _on_tpu(operands) else contextlib.nullcontext():
            return fn(first, *args, **kwargs, **more)

    def on_cpu(self, fn, operands, **more):
        try:
            return self.run(fn, operands, **more)
        except Exception as error:  # noqa: BLE001  whatever the CPU refuses
            raise NoReferenceError(str(error)) from error

    def compare(self, got, want, strides=True, what="result", processed=True):
        """Raises where `got` differs from `want`. Where the CPU's own rounding is the worse one,
        agreeing with a run in a wider type does."""
        if processed and self.sample.output_process_fn_grad is not None:
            got, want = map(self.sample.output_process_fn_grad, (got, want))
        if self.random:
            return assert_metadata(got, want, what)
        if self.op.name in TIES and what == "result":
            got, want = (self._named(x) for x in (got, want))
        strides = strides and self.op.name not in OWN_STRIDES
        assert_same(got, want, strides=strides, what=what, **self.close(want))

    def close(self, want):
        """Tolerances: the entry's own where they are wider than the dtype's."""
        rtol, atol = tolerance(self.op.name) or (0.0, 0.0)
        pairs = [TOLERANCES.get(t.dtype, (0.0, 0.0)) for t in tree_leaves(want) if _is_tensor(t)]
        inexact = [p for p in pairs if p != (0.0, 0.0)]
        if not inexact or (rtol, atol) == (0.0, 0.0):
            return {}
        return {
            "rtol": max(rtol, *(p[0] for p in inexact)),
            "atol": max(atol, *(p[1] for p in inexact)),
        }

    def _named(self, result):
        """Indices replaced by the elements that they name."""
        source = self.sample.input.detach()
        args = list(self.sample.args)
        if self.op.name in ("topk", "kthvalue"):
            args = args[1:]
        dims = [a for a in args if isinstance(a, int) and not isinstance(a, bool)]
        dim = self.sample.kwargs.get("dim", dims[0] if dims else -1)
        values, indices = ([], [result]) if self.op.name == "argsort" else (result, ())
        if not _is_tensor(values) and len(values) == 2:
            values, indices = [values[0]], [values[1]]
        if source.dim() == 0:
            return values, indices
        wide = [i if i.dim() == source.dim() else i.unsqueeze(dim) for i in indices]
        return values, [source.to(i.device).gather(dim, i) for i in wide]


def _on_tpu(tree):
    return any(_is_tensor(t) and t.device.type == "tpu" for t in tree_leaves(tree)) or any(
        x == torch.device("tpu") for x in tree_leaves(tree) if isinstance(x, torch.device)
    )


def assert_metadata(got, want, what, device="tpu", significant=False):
    """significant: the strides of dimensions of size 1 don't count."""

    def strides(t):
        pairs = zip(t.stride(), t.shape, strict=True)
        return tuple(0 if significant and n == 1 else step for step, n in pairs)

    got, want = tree_leaves(got), tree_leaves(want)
    assert len(got) == len(want), f"{what}: {len(got)} results against {len(want)}"
    for g, w in zip(got, want, strict=True):
        if not _is_tensor(w):
            continue
        assert g.device.type == device, f"{what} is on {g.device}"
        assert g.dtype == w.dtype, f"{what}: {g.dtype} against {w.dtype}"
        assert g.shape == w.shape, f"{what}: {tuple(g.shape)} against {tuple(w.shape)}"
        if w.numel() > 0 and w.layout == torch.strided:
            assert strides(g) == strides(w), f"{what}: strides {g.stride()} against {w.stride()}"


def _gradients(outputs, inputs):
    flat = [o for o in tree_leaves(outputs) if _is_tensor(o) and o.requires_grad]
    leaves = [t for t in tree_leaves(inputs) if _is_tensor(t) and t.requires_grad]
    if not flat or not leaves:
        raise NoReferenceError("nothing to differentiate")
    g = torch.Generator().manual_seed(0)
    wide = {o: torch.complex128 if o.is_complex() else torch.float64 for o in flat}
    seeds = [torch.randn(o.shape, dtype=wide[o], generator=g).to(o.device, o.dtype) for o in flat]
    return torch.autograd.grad(flat, leaves, seeds, allow_unused=True)


def _wider(tree, dtype):
    def one(x):
        if x == dtype and isinstance(x, torch.dtype):
            return WIDER[dtype]
        if _is_tensor(x) and x.dtype == dtype:
            return x.detach().to(WIDER[dtype]).requires_grad_(x.requires_grad)
        return x

    return tree_map(one, tree)


def _narrow(tree, like):
    def one(x, y):
        return x.detach().to(y.dtype) if _is_tensor(x) and x.dtype != y.dtype else x

    return [one(x, y) for x, y in zip(tree_leaves(tree), tree_leaves(like), strict=True)]


def _compare(call, dtype, got, want, compute):
    """compute(operands) on the CPU gave `want`. Where tpu differs in sizes, strides or dtypes, it
    must agree with the meta kernel; where in values, with a run in a wider type."""
    try:
        return call.compare(got, want)
    except AssertionError:
        if len(tree_leaves(got)) != len(tree_leaves(want)):
            raise
        got, want = _as_meta(call, got, want, compute)
        if call.op.name in CPU_INEXACT:
            want = _reference(call, want)
        try:
            return call.compare(got, want, strides=False)
        except AssertionError:
            if dtype not in WIDER or call.random or call.op.name in CPU_INEXACT:
                raise
            try:
                exact = compute(_wider(call.operands, dtype))
            except Exception:  # noqa: BLE001
                exact = ()
            if len(tree_leaves(exact)) != len(tree_leaves(want)):
                raise
        call.compare(got, _narrow(exact, want), strides=False, processed=False)


def _reference(call, like):
    """The entry's own reference (SciPy's) in float64."""

    def one(x):
        return x.detach().double().numpy() if _is_tensor(x) else x

    first, args, kwargs = tree_map(one, call.operands)
    results = tree_leaves(call.op.ref(first, *args, **kwargs))
    pairs = zip(results, tree_leaves(like), strict=True)
    return [torch.as_tensor(r).to(w.dtype) for r, w in pairs]


def _as_meta(call, got, want, compute):
    """The results that can be compared, once `got` has the CPU's metadata or the meta kernel's."""
    try:
        assert_metadata(got, want, "result")
        return got, want
    except AssertionError:
        try:
            with torch.device("meta"):
                expected = compute(tree_map(_meta_of, call.operands))
        except Exception:  # noqa: BLE001
            expected = None
        if expected is None:
            raise
    assert_metadata(tree_map(_meta_of, got), expected, "result", "meta")
    pairs = [(g, w) for g, w in zip(tree_leaves(got), tree_leaves(want), strict=True)
             if _is_tensor(w) and g.shape == w.shape]  # fmt: skip
    if _is_tensor(got) and pairs:
        return got, pairs[0][1].to(got.dtype)
    kind = tuple if isinstance(got, tuple) else list
    return kind(g for g, _ in pairs), kind(w.to(g.dtype) for g, w in pairs)


def check_forward(call, dtype):
    want = call.on_cpu(call.op, call.operands)
    got = call.run(call.op, call.place())
    _compare(call, dtype, got, want, lambda x: call.run(call.op, x))


def check_backward(call, dtype):
    def compute(operands):
        result = call.run(call.op, operands)
        if call.sample.output_process_fn_grad is not None:
            result = call.sample.output_process_fn_grad(result)
        return _gradients(result, operands)

    if call.random:
        raise NoReferenceError("random")
    try:
        want = compute(call.operands)
    except Exception as error:  # noqa: BLE001
        raise NoReferenceError(str(error)) from error
    got = compute(call.place())
    given = [[g is not None for g in grads] for grads in (got, want)]
    assert given[0] == given[1], f"gradients that exist: {given[0]} against {given[1]}"
    got, want = [g for g in got if g is not None], [w for w in want if w is not None]
    close = {**call.close(want), "strides": False, "what": "gradient"}
    try:
        assert_same(got, want, **close)
    except AssertionError:
        if dtype not in WIDER:
            raise
        exact = [e for e in compute(_wider(call.operands, dtype)) if e is not None]
        assert_same(got, _narrow(exact, want), **close)


def check_inplace(call, dtype):
    fn = call.op.get_inplace()
    if call.random or not _is_tensor(call.operands[0]) or call.sample.broadcasts_input:
        raise NoReferenceError("random, a list, or too small for the result")

    def written(operands):
        first, args, kwargs = operands
        base = first.detach().clone()
        result = call.run(fn, (base, args, kwargs))
        assert result is base, "an in-place form returns its self"
        return base

    try:
        want = written(call.operands)
    except Exception as error:  # noqa: BLE001
        raise NoReferenceError(str(error)) from error
    operands = tree_map(lambda x: x.detach() if _is_tensor(x) else x, call.place())
    _compare(call, dtype, written(operands), want, written)


def check_out(call, dtype):
    want = call.on_cpu(call.op, call.operands)
    flat = tree_leaves(want)
    if not flat or not all(map(_is_tensor, flat)):
        raise NoReferenceError("no tensor results")

    def target(kind, w, device):
        if kind == "strided":  # another layout: kept
            return torch.zeros([2 * s for s in w.shape], dtype=w.dtype, device=device)[
                tuple(slice(None, None, 2) for _ in w.shape)
            ]
        return torch.empty(0, dtype=w.dtype, device=device)  # resized

    def written(operands, kind, device):
        out = [target(kind, w.detach(), device) for w in flat]
        operands = tree_map(lambda x: x.detach() if _is_tensor(x) else x, operands)
        call.run(call.op, operands, out=out[0] if _is_tensor(want) else tuple(out))
        if kind == "strided" and device == "cpu":  # a few of its kernels lay them out anew
            out = [target(kind, o, device).copy_(o) for o in out]
        out = out[:1] if call.op.name in TIES else out
        return tuple(out) if isinstance(want, tuple) else out

    def again(kind, n, operands):
        device = torch.get_default_device().type  # see _as_meta
        if device == "meta":  # the out= form's own metadata, if it has a meta kernel
            with contextlib.suppress(NotImplementedError):
                return written(operands, kind, device)
        results = tree_leaves(call.run(call.op, operands))[:n]
        if kind == "resized" or device != "meta":
            return results
        pairs = zip(results, flat, strict=False)
        return [target(kind, r, device) if r.shape == w.shape else r for r, w in pairs]

    for kind in ("strided", "resized"):
        try:
            on_cpu = written(call.operands, kind, "cpu")
        except Exception as error:  # noqa: BLE001
            raise NoReferenceError(str(error)) from error
        n = len(on_cpu)
        try:  # some of the CPU's out= forms are wrong for a tensor with strides of its own
            if not call.random:
                assert_same_values(on_cpu, flat[:n])
        except AssertionError as error:
            raise NoReferenceError("the CPU contradicts itself") from error
        got = written(call.place(), kind, "tpu")
        _compare(call, dtype, got, on_cpu, functools.partial(again, kind, n))


def assert_same_values(got, want):
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(
            g.detach(), w.detach().to(g.dtype), rtol=1e-3, atol=1e-3, equal_nan=True,
            check_stride=False,
        )  # fmt: skip


def check_fake(call, dtype):
    from torch._subclasses.fake_tensor import (
        DataDependentOutputException,
        DynamicOutputShapeException,
        FakeTensorMode,
    )

    operands = call.place()
    call.on_cpu(call.op, call.operands)
    try:
        want = call.run(call.op, operands)
    except NotImplementedError as error:  # the forward check's business
        raise NoReferenceError("no result on tpu") from error
    mode = FakeTensorMode()
    try:
        fakes = tree_map(lambda x: mode.from_tensor(x) if _is_tensor(x) else x, operands)
        with mode:
            got = call.run(call.op, fakes)
    except (DataDependentOutputException, DynamicOutputShapeException) as error:
        raise NoReferenceError("no fake result: it depends on data") from error
    except Exception:
        with FakeTensorMode() as mode:  # does the CPU have one?
            try:
                to_fake = lambda x: mode.from_tensor(x) if _is_tensor(x) else x  # noqa: E731
                call.run(call.op, tree_map(to_fake, call.operands))
            except Exception as error:  # noqa: BLE001
                raise NoReferenceError("fake tensors can't run it") from error
        raise
    assert_metadata(got, want, "fake result", significant=True)


def _changes(operands):
    """Ways to lay the tensors out anew, values kept."""
    dims = {t.dim() for t in tree_leaves(operands) if _is_tensor(t)}
    tensors = [t for t in tree_leaves(operands) if _is_tensor(t)]
    yield "sliced", lambda t: layouts(t)["sliced"] if t.dim() else t
    if max(dims, default=0) >= 2:
        yield "transposed", lambda t: layouts(t)["transposed"] if t.dim() >= 2 else t
    if 4 in dims:
        yield (
            "channels_last",
            lambda t: t.contiguous(memory_format=torch.channels_last) if t.dim() == 4 else t,
        )
    if any(t.is_floating_point() or t.is_complex() for t in tensors):
        yield (
            "negative",
            lambda t: torch._neg_view(-t) if t.is_floating_point() or t.is_complex() else t,
        )
    if any(t.is_complex() for t in tensors):
        yield "conjugate", lambda t: t.conj().resolve_conj().conj() if t.is_complex() else t


def check_layouts(call, dtype):
    if call.random:
        raise NoReferenceError("random")
    detached = tree_map(lambda x: x.detach() if _is_tensor(x) else x, call.operands)
    for name, change in _changes(detached):
        cpu = tree_map(lambda x, change=change: change(x) if _is_tensor(x) else x, detached)
        want = call.on_cpu(call.op, cpu)
        call.operands = cpu
        try:
            got = call.run(call.op, call.place())
            _compare(call, dtype, got, want, lambda x: call.run(call.op, x))
        except Exception as error:
            error.add_note(f"operands: {name}")
            raise


def check_odd(call, dtype):
    """Operands of a type that the operator may not know: it works or raises, and nothing dies."""

    def odd(x):
        if not _is_tensor(x) or x.dtype != torch.float32:
            return x
        return x.detach().to(dtype)

    call.operands = tree_map(odd, call.operands)
    with contextlib.suppress(Exception):
        call.run(call.op, call.place())
    with contextlib.suppress(Exception):
        torch.tpu.synchronize()


def _meta_of(t):
    if not _is_tensor(t):
        return t
    return torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")


def run_samples(samples, function):
    """Counter of outcomes of function(sample) and the first failure's text. Outcomes: passed,
    missing (a kernel that the table lacks or refuses), failed, and "no reference", which proves
    nothing."""
    outcome, first = collections.Counter(), None
    for i, sample in enumerate(samples):
        try:
            function(sample)
            torch.tpu.synchronize()
            outcome["passed"] += 1
        except NoReferenceError:
            outcome["no reference"] += 1
        except NotImplementedError as error:
            outcome["missing"] += 1
            first = first or ("missing", str(error).splitlines()[0])
        except Exception as error:  # noqa: BLE001
            outcome["failed"] += 1
            if first is None or first[0] == "missing":
                notes = " ".join(getattr(error, "__notes__", ()))
                first = ("failed", f"sample {i}: {type(error).__name__}: {error} {notes}"[:600])
            with contextlib.suppress(Exception):  # its own error was just recorded
                torch.tpu.synchronize()
    return outcome, first


def run_entry(op, dtype, check="forward", samples=None):
    """What run_samples gives of an entry's samples (all, or so many)."""
    if not applies(op, dtype, check):
        return collections.Counter(), None
    function = globals()[f"check_{check}"]
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = torch.float32 if check == "odd" else dtype
        inputs = op.sample_inputs("cpu", own, requires_grad=check == "backward")
        inputs = itertools.islice(inputs, samples)
        return run_samples(inputs, lambda sample: function(Call(op, sample), dtype))


def verdict(outcome):
    """One word for a pair: passed, missing, failed, or none (nothing to compare)."""
    for word in ("failed", "missing", "passed"):
        if outcome.get(word):
            return word
    return "none"
