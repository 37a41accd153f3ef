"""Reports of section E: random numbers."""

import torch


def dropout(x):
    return torch.nn.functional.dropout(x, 0.5)


def test_e1_each_step_draws_another_mask(counters=None):
    x = torch.ones(64).to("tpu")
    masks = [tuple(dropout(x).tolist()) for _ in range(4)]
    assert len(set(masks)) == 4


def test_e2_repeats_after_reseeding():
    x = torch.ones(64).to("tpu")
    torch.manual_seed(5)
    first = [dropout(x).tolist() for _ in range(2)]
    torch.manual_seed(5)
    assert [dropout(x).tolist() for _ in range(2)] == first and first[0] != first[1]


def test_e3_seed_zero_is_an_ordinary_seed():
    torch.manual_seed(0)
    y = torch.rand(1000, device="tpu").cpu()
    assert 0.4 < float(y.mean()) < 0.6 and float(y.min()) >= 0 and float(y.max()) < 1
    assert 0.3 < float((dropout(torch.ones(1000).to("tpu")).cpu() == 0).float().mean()) < 0.7


def test_e4_two_normal_draws_differ():
    a, b = torch.randn(16, device="tpu"), torch.randn(16, device="tpu")
    assert not torch.equal(a, b)
    assert not torch.equal(
        torch.normal(0.0, 1.0, (16,), device="tpu"), torch.normal(0.0, 1.0, (16,), device="tpu")
    )


def test_e5_rand_like_of_a_permuted_tensor():
    x = torch.ones(3, 2, 2).to("tpu").permute(2, 0, 1)
    y = torch.rand_like(x)
    assert y.stride() == x.stride() and y.shape == x.shape
    assert len(y.cpu().unique()) == 12
    x.add_(1)
    assert float(y.max()) < 1


def test_e6_state_is_constant():
    x = torch.ones(16).to("tpu")
    for _ in range(3):
        x = dropout(x)
    assert torch.tpu.get_rng_state().numel() == 16


def test_a_draw_compiles_once(counters):
    torch.rand(33, device="tpu").cpu()
    counters.reset()
    for seed in range(3):
        torch.manual_seed(seed)
        torch.rand(33, device="tpu")
    assert counters.compiles == 0
