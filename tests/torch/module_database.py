"""PyTorch's module database (module_db) on tpu against the CPU: outputs, gradients and buffers of
every module with every set of arguments it lists, one (module, dtype, training) at a time."""

import collections
import contextlib
import copy
import os
import warnings

os.environ["TORCH_TPU_FALLBACK"] = "error"  # else the CPU would be compared with itself

import torch
from op_database import NoReferenceError, run_samples
from oracle import assert_same, place
from torch.testing._internal.common_modules import module_db
from torch.utils._pytree import tree_leaves

# float32's own rounding: long sums, gradients through several layers.
CLOSE = {torch.float32: (1e-4, 1e-4), torch.float64: (1e-9, 1e-9)}


def entries(names=()):
    return [m for m in module_db if not names or m.name in names]


def _draws(module):
    """Whether a module in training draws random numbers."""
    for m in module.modules():
        if isinstance(m, torch.nn.modules.dropout._DropoutNd | torch.nn.RReLU) and m.training:
            return True
        if isinstance(getattr(m, "dropout", 0), float) and m.dropout > 0 and m.training:
            return True
        if isinstance(m, torch.nn.FractionalMaxPool2d | torch.nn.FractionalMaxPool3d):
            return True
    return False


def _is_tensor(x):
    return isinstance(x, torch.Tensor)


def _run(module, inputs):
    args, kwargs = inputs
    out = module(*args, **kwargs)
    outputs = [t for t in tree_leaves(out) if _is_tensor(t) and t.requires_grad]
    leaves = [t for t in tree_leaves((args, kwargs)) if _is_tensor(t) and t.requires_grad]
    leaves += [p for p in module.parameters() if p.requires_grad]
    grads = []
    if outputs and leaves:
        g = torch.Generator().manual_seed(0)
        seeds = [torch.randn(o.shape, dtype=o.dtype, generator=g).to(o.device) for o in outputs]
        grads = torch.autograd.grad(outputs, leaves, seeds, allow_unused=True)
    return out, [g for g in grads if g is not None], dict(module.named_buffers())


def _compare(info, module_input, dtype, training):
    given = module_input.constructor_input
    module = info.module_cls(*given.args, **given.kwargs).to(dtype).train(training)
    if _draws(module):
        raise NoReferenceError("random")
    inputs = (module_input.forward_input.args, module_input.forward_input.kwargs)
    twin = copy.deepcopy(module).to("tpu")
    placed = place(inputs)
    if any(map(torch.nn.parameter.is_lazy, module.parameters())):  # both draw their parameters
        with contextlib.suppress(Exception):  # whatever the CPU refuses: found below
            module(*inputs[0], **inputs[1])
            twin(*placed[0], **placed[1])
            twin.load_state_dict(module.state_dict())
    try:
        want = _run(module, inputs)
    except Exception as error:  # noqa: BLE001
        raise NoReferenceError(str(error)) from error
    got = _run(twin, placed)
    rtol, atol = CLOSE[dtype]
    for what, g, w in zip(("output", "gradient", "buffer"), got, want, strict=True):
        assert_same(g, w, rtol=rtol, atol=atol, strides=False, what=what)


def run_entry(info, dtype, training):
    """What op_database.run_samples gives of a module's inputs."""
    if dtype not in info.dtypes:
        return collections.Counter(), None
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inputs = info.module_inputs_func(
            info, device="cpu", dtype=dtype, requires_grad=True, training=training
        )
        inputs = [i for i in inputs if i.forward_input is not None]
        return run_samples(inputs, lambda i: _compare(info, i, dtype, training))
