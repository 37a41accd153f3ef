"""The core set: arithmetic, views, reductions, products, layers, indexing, randomness, a
training step."""

import pytest
import torch
import torch.nn.functional as F
from oracle import check

DTYPES = [
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def values(shape, dtype):
    if dtype == torch.bool:
        return torch.rand(shape) > 0.5
    return (
        (torch.randn(shape) * 4).abs().to(dtype)
        if dtype == torch.uint8
        else (torch.randn(shape) * 4).to(dtype)
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_add_and_compare(dtype):
    x, y = values((3, 4), dtype), values((3, 4), dtype)
    check(lambda x, y: (x + y, x * y, x == y, x >= y), x, y)


LAYOUTS = {
    "transposed": lambda x: x.t(),
    "stepped": lambda x: x[1::2, ::3],
    "offset": lambda x: x[2:, 1:],
    "expanded": lambda x: x[:1].expand(5, -1),
    "empty": lambda x: x[:0],
    "scalar": lambda x: x[1, 2],
    "flat piece": lambda x: x.flatten()[3:11],
    "windows": lambda x: x.flatten().unfold(0, 4, 2),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_reads_of_views(layout):
    view = LAYOUTS[layout]
    check(lambda x: (view(x) + 1, view(x).sum(), view(x).clone(), -view(x)), torch.randn(5, 7))


@pytest.mark.parametrize("layout", [k for k in LAYOUTS if k not in ("expanded", "windows")])
def test_writes_through_views(layout):
    view = LAYOUTS[layout]

    def write(x):
        view(x).mul_(2)
        view(x).copy_(view(x) + 1)
        return x

    check(write, torch.randn(5, 7))


def test_overlapping_writes_raise():
    x = torch.zeros(3).to("tpu").expand(4, 3)
    with pytest.raises(RuntimeError, match="single memory location|overlap"):
        x.add_(1)


def test_dtype_views():
    x = torch.arange(6, dtype=torch.float32)
    check(lambda x: (x.view(torch.int32), x.view(torch.uint8), x.view(torch.int64)), x)
    check(lambda x: x.view(torch.bool), torch.tensor([0, 1, 1, 0], dtype=torch.uint8))
    z = torch.randn(3, dtype=torch.complex64)
    check(lambda z: (torch.view_as_real(z), z.real, z.imag, z.conj() * 2), z)


def test_reductions():
    x = torch.randn(4, 5)
    check(
        lambda x: (x.sum(), x.sum(0), x.mean(1, keepdim=True), x.amax(1), x.argmax(1), x.var(0)), x
    )
    check(lambda x: (x.sum(), x.any(), x.all()), torch.rand(300) > 0.5)
    check(lambda x: (x.max(), x.min()), torch.tensor([1.0, float("nan"), 3.0]))


def test_products():
    a, b = torch.randn(3, 4), torch.randn(4, 5)
    check(
        lambda a, b: (a @ b, torch.addmm(torch.ones(5, device=a.device), a, b), a.t() @ a),
        a,
        b,
        grad=True,
    )
    check(lambda a: torch.bmm(a, a.transpose(1, 2)), torch.randn(2, 3, 4))


def test_layers_and_their_gradients():
    x = torch.randn(2, 3, 8, 8)
    check(
        lambda x, w: F.conv2d(x, w, padding=1),
        x,
        torch.randn(4, 3, 3, 3),
        grad=True,
        rtol=1e-4,
        atol=1e-4,
    )
    check(lambda x: F.max_pool2d(x, 2), x, grad=True)
    check(lambda x: F.layer_norm(x, (8,)), x, grad=True, rtol=1e-4, atol=1e-4)
    check(lambda x: F.softmax(x, -1).log(), x, grad=True, rtol=1e-4, atol=1e-4)
    check(
        lambda x: F.cross_entropy(x, torch.tensor([1, 0], device=x.device)),
        torch.randn(2, 3),
        grad=True,
    )


def test_channels_last():
    x = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    check(lambda x: (x + 1, x.relu(), x.contiguous(), x.sum((2, 3))), x)


def test_indexing():
    x = torch.randn(5, 3)
    i = torch.tensor([4, 0, -1])
    check(lambda x, i: (x[i], x.index_select(0, i.abs()), x.gather(0, i.abs()[:, None])), x, i)
    check(lambda x, i: x.index_put((i,), torch.ones(3, 3, device=x.device)), x, i)


def test_a_bad_index_is_reported_at_the_next_read():
    x = torch.randn(5).to("tpu")
    with pytest.raises(IndexError, match="index 9 is out of bounds for dimension 0 with size 5"):
        x[torch.tensor([1, 9]).to("tpu")].cpu()
    assert torch.equal((x + 0).cpu(), x.cpu())  # the device goes on


def test_random_numbers_follow_the_seed():
    draws = []
    for _ in range(2):
        torch.manual_seed(7)
        draws.append((torch.rand(1000, device="tpu").cpu(), torch.randn(1000, device="tpu").cpu()))
    assert torch.equal(draws[0][0], draws[1][0])
    assert torch.equal(draws[0][1], draws[1][1])
    assert 0.45 < draws[0][0].mean() < 0.55
    assert draws[0][0].min() >= 0 and draws[0][0].max() < 1
    assert draws[0][1].std() == pytest.approx(1, abs=0.1)


def test_the_random_stream_is_the_same_everywhere():
    torch.manual_seed(1234)
    got = torch.randint(2**31 - 1, (4,), device="tpu", dtype=torch.int64)
    assert got.tolist() == [764302907, 1602301242, 1922659118, 232335416]


def test_training_step_equals_the_cpu():
    def steps(device):
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.Linear(8, 3)
        ).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        for step in range(3):
            x = torch.randn(4, 6, generator=torch.Generator().manual_seed(step)).to(device)
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return [p.detach().cpu() for p in model.parameters()]

    for got, want in zip(steps("tpu"), steps("cpu"), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
