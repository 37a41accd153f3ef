"""Activation checkpointing: the random state of the device is kept. Report P3; trap:
`_initialized`."""

import torch
from torch.utils.checkpoint import checkpoint


def test_dropout_is_the_same_when_recomputed():
    x = torch.ones(256).to("tpu").requires_grad_()
    y = checkpoint(lambda t: torch.nn.functional.dropout(t * 1.0, 0.5), x, use_reentrant=False)
    kept = y.detach() != 0
    y.backward(torch.ones(256).to("tpu"))
    assert torch.equal((x.grad != 0).cpu(), kept.cpu())
    x.grad = None
    y = checkpoint(lambda t: torch.nn.functional.dropout(t * 1.0, 0.5), x, use_reentrant=True)
    kept = y.detach() != 0
    y.backward(torch.ones(256).to("tpu"))
    assert torch.equal((x.grad != 0).cpu(), kept.cpu())


def test_same_gradient_as_without():
    x = torch.arange(4.0).to("tpu").requires_grad_()
    checkpoint(lambda t: (t * t).exp(), x, use_reentrant=False).backward(torch.ones(4).to("tpu"))
    y = torch.arange(4.0).to("tpu").requires_grad_()
    (y * y).exp().backward(torch.ones(4).to("tpu"))
    assert torch.equal(x.grad.cpu(), y.grad.cpu())


def test_saved_tensors_on_the_cpu():
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        x = torch.arange(4.0).to("tpu").requires_grad_()
        y = x * x
    y.backward(torch.ones(4).to("tpu"))
    assert x.grad.tolist() == [0.0, 2.0, 4.0, 6.0]
