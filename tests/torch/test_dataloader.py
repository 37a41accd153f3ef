"""Pinned memory, and loaders with workers."""

import pytest
import torch
from loader_dataset import Squares


def test_pinned_memory():
    x = torch.arange(4.0).pin_memory()
    assert x.is_pinned() and not torch.ones(1).is_pinned()
    assert x[1:].is_pinned()
    y = x.to("tpu", non_blocking=True)
    x.zero_()
    assert y.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert torch.empty(3, pin_memory=True).is_pinned()
    assert not torch.ones(1).to("tpu").is_pinned()
    with pytest.raises(RuntimeError, match="pin"):
        torch.ones(1).to("tpu").pin_memory()


@pytest.mark.parametrize("workers", [0, 2])
def test_loader(workers):
    torch.ones(1).to("tpu")  # the device is in use before the workers are forked
    data = Squares() if workers else [Squares.item(i) for i in range(8)]
    loader = torch.utils.data.DataLoader(
        data, batch_size=4, num_workers=workers, pin_memory=True, timeout=60 if workers else 0
    )
    total = 0.0
    for x, i in loader:
        assert x.is_pinned() and i.is_pinned()
        total += float(x.to("tpu", non_blocking=True).cpu().sum())
    assert total == 2.0 * sum(i * i for i in range(8))
