"""Recurrent layers and cells against the CPU, through PyTorch's own modules."""

import copy

import pytest
import torch
from oracle import check


def compare(module, *inputs):
    def run(m, args):
        out = m(*args)
        first = out[0] if isinstance(out, tuple) else out
        grads = torch.autograd.grad(first.sin().sum(), [*m.parameters(), args[0]])
        return [first.detach(), *grads]

    torch.manual_seed(0)
    want = run(module, [x.clone().requires_grad_() for x in inputs])
    got = run(copy.deepcopy(module).to("tpu"), [x.to("tpu").requires_grad_() for x in inputs])
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g.cpu(), w, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU])
def test_layer(kind, bias, no_fallback):
    torch.manual_seed(1)
    compare(kind(3, 4, bias=bias), torch.randn(3, 2, 3))


@pytest.mark.parametrize("kind", [torch.nn.LSTMCell, torch.nn.GRUCell])
def test_cell(kind, no_fallback):
    torch.manual_seed(1)
    compare(kind(3, 4), torch.randn(2, 3))


def test_layer_both_ways(no_fallback):
    torch.manual_seed(1)
    compare(torch.nn.LSTM(3, 4, bidirectional=True, num_layers=2), torch.randn(3, 2, 3))


def test_second_derivative_of_a_cell(no_fallback):
    torch.manual_seed(1)
    w = [torch.randn(s) for s in ((12, 3), (12, 4))]

    def twice(x, h, w_ih, w_hh):
        y = torch.gru_cell(x, h, w_ih, w_hh)
        (g,) = torch.autograd.grad(y.sin().sum(), x, create_graph=True)
        return g

    check(twice, torch.randn(2, 3), torch.randn(2, 4), *w, grad=True, rtol=1e-3, atol=1e-4)
