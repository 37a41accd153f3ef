"""Reports of section R: checkpoints, and O of their resuming."""

import io

import torch


def step(model, optimizer, x):
    optimizer.zero_grad()
    loss = ((model(x)) ** 2).mean()
    loss.backward()
    optimizer.step()
    return loss.item()


def make():
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).to(
        "tpu"
    )
    return model, torch.optim.Adam(model.parameters(), lr=0.01)


def test_r1_opens_on_the_cpu():
    file = io.BytesIO()
    model, _ = make()
    torch.save(model.state_dict(), file)
    file.seek(0)
    state = torch.load(file, map_location="cpu")
    assert all(v.device.type == "cpu" for v in state.values())


def test_r2_map_location_is_honoured():
    file = io.BytesIO()
    torch.save(torch.ones(2).to("tpu"), file)
    file.seek(0)
    assert torch.load(file, map_location="cpu").device.type == "cpu"


def test_r4_weights_only():
    file = io.BytesIO()
    model, optimizer = make()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    torch.load(file, weights_only=True)


def test_r5_resuming_goes_on_as_if_nothing_happened():
    x = torch.rand(16, 4).to("tpu")
    model, optimizer = make()
    straight = [step(model, optimizer, x) for _ in range(6)]
    model, optimizer = make()
    losses = [step(model, optimizer, x) for _ in range(3)]
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    state = torch.load(file, weights_only=True)
    model, optimizer = make()
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    losses += [step(model, optimizer, x) for _ in range(3)]
    assert losses == straight
