"""The child of test_multiprocessing.py."""

import torch

import torch_tpu  # noqa: F401


def double(inbox, outbox) -> None:
    x, p = inbox.get(timeout=90)
    y = x + x
    outbox.put((y, [x.device.type, type(p).__name__, str(p.requires_grad)]))
    inbox.get(timeout=90)  # the sender of shared memory lives until it was received
    torch.tpu.synchronize()


def total(x, p, outbox) -> None:
    outbox.put((x.sum().item() + p.sum().item(), x.device.type, p.requires_grad))
