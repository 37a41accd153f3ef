"""Fuse mode at full length: where it cuts, what it keeps, which threads it holds on."""

import fresh_process
import pytest
import torch

import torch_tpu


@pytest.fixture
def fuse():
    with torch_tpu.eager_mode("fuse"):
        yield


def test_backward_is_recorded_too(fuse, counters):
    x = torch.rand(4, 4).to("tpu").requires_grad_()
    torch.tpu.synchronize()
    counters.reset()
    (x @ x).tanh().sum().backward()
    assert counters.launches == 0
    grad = x.grad.cpu()
    assert counters.launches == 1
    y = x.detach().cpu().requires_grad_()
    (y @ y).tanh().sum().backward()
    torch.testing.assert_close(grad, y.grad)


def test_modes_hold_on_autograds_threads():
    x = torch.ones(2, device="tpu", requires_grad=True)
    seen = []
    for mode in ("debug", "fuse", "strict"):
        with torch_tpu.eager_mode(mode):
            y = x * 2
            y.register_hook(lambda grad: seen.append(torch_tpu.get_eager_mode()))
            y.sum().backward()
    y = x * 2
    y.register_hook(lambda grad: seen.append(torch_tpu.get_eager_mode()))
    y.sum().backward()
    assert seen == ["debug", "fuse", "strict", "strict"]


# A profiler keeps its state in the place where the mode is kept: neither may lose its own.
def test_a_mode_that_starts_inside_a_profile_outlives_it():
    fresh_process.run("""
        with torch.profiler.profile() as profile:
            mode = torch_tpu.eager_mode("fuse")
            mode.__enter__()
            torch.ones(3, device="tpu").exp()
        assert torch_tpu.get_eager_mode() == "fuse"
        mode.__exit__(None, None, None)
        assert torch_tpu.get_eager_mode() == "strict"
        assert any(e.key == "aten::exp" for e in profile.key_averages())
    """)


def sample(turns: int, device: str) -> torch.Tensor:
    torch.manual_seed(3)
    weight = torch.randn(8, 8).div(8).to(device)
    y = torch.ones(8, 8, device=device)
    for i in range(turns):
        y = y - 0.1 * torch.tanh(y @ weight) + 0.001 * float(i)
    return y


def test_a_long_loop_with_no_look_compiles_its_turn_once(fuse, counters):
    got = sample(1000, "tpu").cpu()
    assert counters["flush.repeat"] >= 10
    assert counters.flushes <= counters["flush.repeat"] + 1
    assert counters.compiles + counters.disk_hits <= 5
    counters.reset()
    sample(1000, "tpu").cpu()
    assert counters.compiles + counters.disk_hits == 0
    with torch_tpu.eager_mode("strict"):
        torch.testing.assert_close(got, sample(1000, "tpu").cpu(), rtol=1e-4, atol=1e-4)


def test_a_training_loop_with_no_look_is_one_program_a_step(fuse, counters):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(6, 7), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(7, 3)
    ).to("tpu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.9)
    for step in range(8):
        x, y = torch.rand(5, 6).to("tpu"), torch.tensor([0, 1, 2, 0, 1]).to("tpu")
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        schedule.step()
        torch.tpu.synchronize()
        if step == 2:
            counters.reset()
    assert counters.compiles + counters.disk_hits == 0
    assert counters["flush.optimizer step"] == 5
    assert counters.launches == 5


def test_lists_of_equal_tensors_keep_their_values(fuse):
    torch.manual_seed(1)
    ours = [torch.rand(3).to("tpu") for _ in range(150)]
    theirs = [t.cpu() for t in ours]
    for _ in range(3):
        torch._foreach_mul_(ours, 1.5)
        torch._foreach_add_(ours, [t.clone() for t in ours][::-1])
        torch._foreach_mul_(theirs, 1.5)
        torch._foreach_add_(theirs, [t.clone() for t in theirs][::-1])
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.cpu(), b)


def test_switching_modes_in_the_middle():
    x = torch.arange(6.0).to("tpu")
    want = torch.arange(6.0)
    for turn, mode in enumerate(("fuse", "strict", "debug", "fuse", "debug", "fuse")):
        with torch_tpu.eager_mode(mode):
            x[turn:] += turn
            x = x * 2
        want[turn:] += turn
        want = want * 2
    assert torch.equal(x.cpu(), want)


def test_dead_results_are_never_computed(fuse, counters):
    x = torch.ones(4).to("tpu")
    for _ in range(5):
        x * 3
    torch.tpu.synchronize()
    assert counters.launches == 0


def test_draws_differ_and_repeat_after_seeding(fuse):
    def draw():
        torch.manual_seed(5)
        return [torch.rand(4, device="tpu") for _ in range(3)]

    a, b = draw(), draw()
    with torch_tpu.eager_mode("strict"):
        c = draw()
    for x, y, z in zip(a, b, c, strict=True):
        assert torch.equal(x.cpu(), y.cpu())
        assert torch.equal(x.cpu(), z.cpu())
    assert not torch.equal(a[0].cpu(), a[1].cpu())


def test_a_bad_index_raises_though_its_result_is_dead(fuse):
    x = torch.arange(3.0).to("tpu")
    i = torch.tensor([0, 5]).to("tpu")
    x[i]
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        torch.tpu.synchronize()
    assert x.tolist() == [0, 1, 2]
