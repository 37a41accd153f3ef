"""Reports of section P: gradient checkpointing. Not P5, of models of billions of parameters."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint

F = torch.nn.functional


class Block(torch.nn.Module):
    """Much larger inside than at its ends."""

    def __init__(self, dropout: float = 0.0):
        super().__init__()
        self.up, self.down = torch.nn.Linear(16, 512), torch.nn.Linear(512, 16)
        self.dropout = dropout

    def forward(self, x):
        return x + self.down(F.dropout(torch.tanh(self.up(x)), self.dropout))


@pytest.mark.strict  # in fuse mode what a step keeps lies inside its program and isn't counted
def test_p1_checkpoints_save_memory():
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[Block() for _ in range(4)]).to("tpu")
    x = torch.randn(256, 16, device="tpu")

    def step(through):
        model.zero_grad(set_to_none=True)
        torch.tpu.synchronize()
        before = torch.tpu.memory_allocated()
        torch.tpu.reset_peak_memory_stats()
        y = x
        for block in model:
            y = through(block, y)
        y.sum().backward()
        torch.tpu.synchronize()
        return torch.tpu.max_memory_allocated() - before, model[0].up.weight.grad.cpu()

    step(lambda block, y: block(y))
    plain, want = step(lambda block, y: block(y))
    step(lambda block, y: checkpoint(block, y, use_reentrant=False))
    saved, got = step(lambda block, y: checkpoint(block, y, use_reentrant=False))
    assert torch.allclose(got, want, rtol=1e-5, atol=1e-6)
    # Four blocks keep 256 x 512 floats and more each; recomputed, one block's at a time.
    assert saved < 0.6 * plain, (saved, plain)


def test_p2_checkpoint_inside_a_compiled_step():
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, x = Block().to("tpu"), torch.randn(8, 16, device="tpu")

    def loss(x):
        return checkpoint(model, x, use_reentrant=False).square().sum()

    loss(x).backward()
    want = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    torch.compile(loss, backend="tpu", dynamic=False)(x).backward()
    for p, w in zip(model.parameters(), want, strict=True):
        assert torch.allclose(p.grad.cpu(), w.cpu(), rtol=1e-4, atol=1e-5)


def test_p3_masks_of_both_passes_are_equal():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Dropout(0.5)).to("tpu")
    for reentrant in (False, True):
        x = torch.randn(8, 16, device="tpu", requires_grad=True)
        y = checkpoint(model, x, use_reentrant=reentrant, preserve_rng_state=True)
        y.sum().backward()
        kept = (y.detach() != 0).float()
        want = kept @ model[0].weight.detach() * 2
        assert torch.allclose(x.grad.cpu(), want.cpu(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("budget", [0.3, 0.9])
def test_p4_random_numbers_are_not_drawn_again(budget):
    """At an activation budget below 1 the partitioner recomputes what is cheap."""
    torch._dynamo.reset()
    x = torch.full((4096,), 2.0, device="tpu", requires_grad=True)
    with torch._functorch.config.patch(activation_memory_budget=budget):
        fn = torch.compile(
            lambda x: F.dropout(torch.sin(x).exp(), 0.5).tanh(), backend="tpu", dynamic=False
        )
        y = fn(x)
        y.sum().backward()
    kept = (y.detach() != 0).cpu()
    assert 0 < kept.sum() < kept.numel()
    assert torch.equal((x.grad != 0).cpu(), kept)
