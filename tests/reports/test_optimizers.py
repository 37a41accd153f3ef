"""Reports O1, O2: optimisers."""

import torch


def test_o1_capturable_in_one_group():
    torch.manual_seed(0)
    p = torch.nn.Parameter(torch.randn(3).to("tpu"))
    optimizer = torch.optim.Adam([{"params": [p], "capturable": True}], lr=0.1)
    before = p.detach().cpu().clone()
    p.grad = torch.ones(3).to("tpu")
    optimizer.step()
    assert not torch.equal(p.detach().cpu(), before)


def test_o2_rprop_moves_a_transposed_parameter():
    torch.manual_seed(0)
    start = torch.randn(2, 3)
    out = []
    for device in ("cpu", "tpu"):
        p = torch.nn.Parameter(start.clone().to(device).t())
        p.grad = torch.ones(2, 3).to(device).t()
        torch.optim.Rprop([p]).step()
        out.append(p.detach().cpu())
    torch.testing.assert_close(out[1], out[0])
    assert not torch.equal(out[1], start.t())
