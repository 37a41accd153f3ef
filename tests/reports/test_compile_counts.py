"""Reports A1, A2, B1, B3: what compiles when, and sizes that depend on data."""

import torch
from torch import nn


def test_a1_steady_state_compiles_nothing(counters):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2)).to("tpu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    for step in range(6):
        if step == 2:
            counters.reset()
        x = torch.randn(4, 8).to("tpu")
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    assert counters.compiles == 0
    assert counters.disk_hits == 0


def test_a2_one_more_layer_compiles_only_that_layer(counters):
    x = torch.randn(4, 6).to("tpu")
    layers = [nn.Linear(6, 6).to("tpu"), nn.Linear(6, 6).to("tpu")]
    layers[1](layers[0](x)).sum().item()
    counters.reset()
    layers[1](torch.erfc(layers[0](x))).sum().item()
    assert counters.compiles + counters.disk_hits <= 1


def test_b1_rows_chosen_by_nonzero():
    boxes = torch.tensor(
        [[0, 0, 2, 2], [0, 0, 1, 1], [1, 1, 3, 4], [0, 0, 1.2, 1.2], [2, 2, 5, 5.0]]
    )

    def keep(b):
        sizes = b[:, 2:] - b[:, :2]
        return b[torch.nonzero((sizes >= 1.2).all(dim=1)).squeeze(1)]

    want = keep(boxes)
    got = keep(boxes.to("tpu"))
    assert want.shape == (4, 4)
    assert torch.equal(got.cpu(), want)


def test_b3_a_nonzero_result_feeds_a_model():
    torch.manual_seed(0)
    layer = nn.Linear(1, 2)
    twin = nn.Linear(1, 2)
    twin.load_state_dict(layer.state_dict())
    mask = torch.rand(10) > 0.5
    want = layer(mask.nonzero().float()).sum()
    got = twin.to("tpu")(mask.to("tpu").nonzero().float()).sum()
    torch.testing.assert_close(got.cpu(), want, rtol=1e-5, atol=1e-5)
