"""Runs PyTorch's own operator database (op_db) on tpu against the CPU.

Used by test_opinfo.py (a few samples of each op) and by `python tests/torch/opinfo_runner.py`, which
prints what fails, per op and dtype: `--samples all --dtypes float32,int64 [op ...]`.
"""

import argparse
import collections
import itertools
import os
import warnings

os.environ["TORCH_TPU_FALLBACK"] = "error"  # else the CPU would be compared with itself

import torch
from oracle import assert_same, to_tpu
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_map

import torch_tpu  # noqa: F401

DTYPES = (torch.float32, torch.int64)

# Entries whose CPU result is no reference: random, uninitialised or not a function of the input.
NO_REFERENCE = {
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided",
    "bernoulli", "multinomial", "normal", "rand_like", "randint", "randint_like", "randn",
    "randn_like", "uniform", "cauchy", "exponential", "geometric", "log_normal",
    "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d",
    "nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout",
    "nn.functional.feature_alpha_dropout.with_train", "nn.functional.rrelu",
    "nn.functional.multi_head_attention_forward",  # its samples draw dropout
    "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d",  # draw samples
    # In eval mode the CPU returns no statistics; the meta kernel, which tpu follows, returns some.
    "native_batch_norm", "_native_batch_norm_legit",
}  # fmt: skip

# Samples that say where results shall lie ("cpu"), or operands that must lie there.
PLACED = {"to", "tensor_split", "sparse.mm.reduce", "sparse.sampled_addmm", "to_sparse"}

# Several answers are right: which of equal elements an index names.
TIES = {"topk", "kthvalue", "mode", "median", "nanmedian", "argsort", "sort", "msort"}

# Random projections.
NOT_UNIQUE = {"svd_lowrank", "pca_lowrank"}

TOLERANCES = {  # (rtol, atol) where float32's own rounding grows: long sums, iterations
    "linalg": (1e-3, 1e-3), "matrix_exp": (1e-3, 1e-3), "nn.functional.conv": (1e-3, 1e-3),
    # The CPU's own trigamma is good to 2e-5 in float32.
    "polygamma": (1e-4, 1e-4), "special.polygamma": (1e-4, 1e-4), "digamma": (1e-4, 1e-4),
    "cdist": (1e-3, 1e-3), "nn.functional.ctc_loss": (1e-3, 1e-3), "logcumsumexp": (1e-2, 1e-2), "nn.functional.layer_norm": (1e-4, 1e-4), "nn.functional.scaled_dot_product_attention": (1e-4, 1e-4),
}  # fmt: skip


def ops(names=()):
    """The entries of op_db that have a reference, or those named."""
    for op in op_db:
        if names and op.name not in names and op.full_name not in names:
            continue
        if op.name in NO_REFERENCE or op.name in NOT_UNIQUE or op.name in PLACED:
            continue
        yield op


# The CPU's FFT library and LAPACK lay their results out in ways of their own; tpu follows the meta
# kernels, as torch.compile needs, and are row-major where there is none.
OWN_STRIDES = ("fft.", "linalg.lstsq", "geqrf")


def tolerance(op):
    for prefix, pair in TOLERANCES.items():
        if op.name.startswith(prefix):
            return pair
    return (None, None)


def to_device(x):
    if isinstance(x, torch.Tensor):
        return to_tpu(x)
    return "tpu" if str(x) == "cpu" else x


def _gradients(outputs, inputs):
    flat = [o for o in torch.utils._pytree.tree_leaves(outputs)
            if isinstance(o, torch.Tensor) and o.requires_grad]  # fmt: skip
    if not flat:
        return None
    torch.manual_seed(0)
    seeds = [torch.randn(o.shape, dtype=o.dtype).to(o.device) for o in flat]
    leaves = [t for t in torch.utils._pytree.tree_leaves(inputs)
              if isinstance(t, torch.Tensor) and t.requires_grad]  # fmt: skip
    return torch.autograd.grad(flat, leaves, seeds, allow_unused=True)


def run_sample(op, sample, backward):
    """True if tpu agrees with the CPU, False if the sample has no CPU result to compare with; raises
    what went wrong."""
    cpu = (sample.input, sample.args, sample.kwargs)
    if sample.kwargs.get("dropout_p", 0) > 0:
        return False  # random
    # What of the results is defined: singular vectors, say, are up to their signs.
    process = sample.output_process_fn_grad
    if not isinstance(process, type(lambda: 0)):
        process = lambda x: x  # noqa: E731
    try:
        want = process(op(cpu[0], *cpu[1], **cpu[2]))
        want_grads = _gradients(want, cpu) if backward else None
    except Exception:  # noqa: BLE001  the sample is no good for the CPU itself
        return False
    tpu = tree_map(to_device, cpu)
    with torch.device("tpu"):  # factories without a device argument
        got = process(op(tpu[0], *tpu[1], **tpu[2]))
    rtol, atol = tolerance(op)
    if op.name in TIES and isinstance(want, tuple):
        got, want = got[:1], want[:1]
    assert_same(got, want, rtol=rtol, atol=atol, strides=not op.name.startswith(OWN_STRIDES))
    if want_grads is not None:
        got_grads = _gradients(got, tpu)
        for g, w in zip(got_grads, want_grads, strict=True):
            assert (g is None) == (w is None), "a gradient is missing"
            if w is not None:
                assert_same(g, w, rtol=rtol, atol=atol, strides=False, what="gradient")
    return True


def run_op(op, dtype, samples, backward=True):
    """Counter of outcomes and the first failure's text. Outcomes: passed, missing, failed, and
    "no reference", which proves nothing."""
    outcome, first = collections.Counter(), None
    if dtype not in op.supported_dtypes("cpu"):
        return outcome, first
    backward = backward and dtype in op.supported_backward_dtypes("cpu")
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inputs = op.sample_inputs("cpu", dtype, requires_grad=backward)
        for sample in itertools.islice(inputs, samples):
            try:
                compared = run_sample(op, sample, backward)
                torch.tpu.synchronize()
                outcome["passed" if compared else "no reference"] += 1
            except NotImplementedError as error:
                outcome["missing"] += 1
                first = first or ("missing", str(error).splitlines()[0])
            except Exception as error:  # noqa: BLE001
                outcome["failed"] += 1
                if first is None or first[0] == "missing":
                    first = ("failed", f"{type(error).__name__}: {error}"[:400])
                try:
                    torch.tpu.synchronize()
                except Exception:  # noqa: BLE001, S110  its own error was just recorded
                    pass
    return outcome, first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ops", nargs="*")
    parser.add_argument("--samples", default="6")
    parser.add_argument("--dtypes", default="float32,int64")
    parser.add_argument("--shard", default="0/1", help="i/n: every n-th op")
    args = parser.parse_args()
    samples = None if args.samples == "all" else int(args.samples)
    dtypes = [getattr(torch, d) for d in args.dtypes.split(",")]
    shard, shards = map(int, args.shard.split("/"))
    total = collections.Counter()
    for k, op in enumerate(ops(args.ops)):
        if k % shards != shard:
            continue
        for dtype in dtypes:
            outcome, first = run_op(op, dtype, samples)
            compared = set(outcome) - {"no reference"}
            total["pairs"] += bool(compared)
            total["pairs passed"] += compared == {"passed"}
            total.update(outcome)
            if first:
                print(f"{first[0]:8} {op.full_name} {dtype} {dict(outcome)} {first[1]}", flush=True)
    print(dict(total))


if __name__ == "__main__":
    main()
