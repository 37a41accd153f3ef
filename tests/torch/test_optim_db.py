"""PyTorch's optimizer database in float32: every optimizer with every set of arguments it
lists, as a loop, foreach and fused, three steps on tpu against the CPU."""

import pytest
import torch
from torch.testing._internal.common_optimizers import optim_db

pytestmark = pytest.mark.slow
SPARSE = {"SparseAdam"}  # its gradients are sparse tensors, which tpu refuses by name


def cases():
    for info in optim_db:
        name = info.optim_cls.__name__
        if name in SPARSE:
            continue
        for given in info.optim_inputs_func(device="cpu", dtype=torch.float32):
            if given.kwargs.get("differentiable"):
                continue  # needs parameters that are no leaves: not a training loop
            for impl in ("default", *(i for i in info.supported_impls if i != "differentiable")):
                label = f"{name}-{impl}-{given.desc}".replace(" ", "_")
                yield pytest.param(info, impl, given.kwargs, id=label)


def run(info, kwargs, device):
    torch.manual_seed(0)
    shapes = [(2, 3)] if info.optim_cls.__name__ == "Muon" else [(2, 3), (3,), ()]
    params = [torch.nn.Parameter(torch.randn(s).to(device)) for s in shapes]
    weights = [torch.randn(s).to(device) for s in shapes]

    def place(v):
        return v.clone().to(device) if isinstance(v, torch.Tensor) else v

    optimizer = info.optim_cls(params, **{k: place(v) for k, v in kwargs.items()})

    def closure():
        optimizer.zero_grad()
        loss = sum(((p * w).square() + p).sum() for p, w in zip(params, weights, strict=True))
        loss.backward()
        return loss

    for _ in range(3):
        if info.step_requires_closure:
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
    return [p.detach().cpu() for p in params]


@pytest.mark.parametrize(("info", "impl", "kwargs"), cases())
def test_optimizer(info, impl, kwargs):
    flags = {} if impl == "default" else {impl: True}
    if impl == "forloop":
        flags = {"foreach": False}
    host = {k: v for k, v in kwargs.items() if k != "capturable"}
    want = run(info, {**host, **flags}, "cpu")
    got = run(info, {**kwargs, **flags}, "tpu")
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g, w, rtol=1e-4, atol=1e-5)
