"""Fused optimizers and the gradient scaler against the CPU; programs are shared by size."""

import pytest
import torch
from oracle import check

pytestmark = pytest.mark.usefixtures("no_fallback")

CASES = [
    (torch.optim.AdamW, {}),
    (
        torch.optim.AdamW,
        {"amsgrad": True, "maximize": True, "betas": (0.3, 0.95), "weight_decay": 0.1},
    ),
    (torch.optim.Adam, {"weight_decay": 0.1}),
    (torch.optim.Adam, {"lr": torch.tensor(0.01)}),
    (torch.optim.SGD, {"lr": 0.1}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "maximize": True}),
    (torch.optim.Adagrad, {"lr_decay": 0.1, "weight_decay": 0.1}),
]
SHAPES = [(3, 4), (12,), (4, 3), ()]


def train(
    optimizer, options, device: str, dtype: torch.dtype, steps: int = 3
) -> list[torch.Tensor]:
    g = torch.Generator().manual_seed(1)
    params = [torch.randn(s, generator=g).to(device, dtype).requires_grad_() for s in SHAPES]
    step = optimizer(params, fused=True, **options)
    out = []
    for _ in range(steps):
        for p in params:
            p.grad = torch.randn(p.shape, generator=g).to(device, dtype)
        before = [p.grad.cpu() for p in params]
        step.step()
        assert all(torch.equal(p.grad.cpu(), b) for p, b in zip(params, before, strict=True))
    for p in params:
        out.append(p.detach().cpu())
        out += [v.cpu() for _, v in sorted(step.state[p].items()) if isinstance(v, torch.Tensor)]
    return out


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("optimizer", "options"), CASES)
def test_fused(optimizer, options, dtype):
    on_tpu = train(optimizer, options, "tpu", dtype)
    on_cpu = train(optimizer, options, "cpu", dtype)
    for got, want in zip(on_tpu, on_cpu, strict=True):
        assert got.dtype == want.dtype
        torch.testing.assert_close(
            got, want, rtol=1e-5 if dtype == torch.float32 else 1e-2, atol=1e-5
        )


def test_schedule_compiles_nothing(counters):
    params = [torch.randn(s, device="tpu").requires_grad_() for s in SHAPES]
    step = torch.optim.AdamW(params, fused=True)
    for turn in range(6):
        for p in params:
            p.grad = torch.ones_like(p)
        step.param_groups[0]["lr"] = 1e-3 * (turn + 1)
        step.step()
        if turn == 1:
            torch.tpu.synchronize()
            counters.reset()
    assert counters.compiles == 0 and counters.disk_hits == 0


def test_scaler_ops():
    def unscale(a, b, found, inverse):
        torch._amp_foreach_non_finite_check_and_unscale_([a, b], found, inverse)
        return found

    good, bad = torch.tensor([[2.0, 4.0]]), torch.tensor([1.0, float("inf")])
    zero, half = torch.zeros(()), torch.tensor(0.5)
    assert check(unscale, good, good.bfloat16(), zero, half).item() == 0
    assert check(unscale, good, bad, zero, half).item() == 1
    for found, tracker in ((0.0, 0), (0.0, 2), (1.0, 2)):
        check(lambda s, t, f: torch._amp_update_scale_(s, t, f, 2.0, 0.5, 3), torch.tensor([8.0]),
              torch.tensor([tracker], dtype=torch.int32), torch.tensor([found]))  # fmt: skip


def test_scaled_step():
    def train_scaled(device):
        w = torch.ones(3, device=device, requires_grad=True)
        step = torch.optim.SGD([w], lr=0.1, momentum=0.9, fused=True)
        scaler = torch.amp.GradScaler(device, init_scale=4.0, growth_interval=2)
        for factor in (1.0, float("inf"), 2.0, 3.0):
            step.zero_grad()
            scaler.scale((w * factor).sum()).backward()
            scaler.step(step)
            scaler.update()
        return w.detach().cpu(), scaler.get_scale()

    got, want = train_scaled("tpu"), train_scaled("cpu")
    torch.testing.assert_close(got[0], want[0])
    assert got[1] == want[1]
