"""The walking skeleton: fuse, record, script and ahead-of-time use one table and one composer."""

import importlib.util
import pathlib

import pytest
import torch

from torch_tpu import compiler, modes


def test_fuse_runs_a_loop_as_one_program(counters):
    x = torch.rand(8, 8)
    y = x.to("tpu")
    start_flushes = counters.flushes

    def loop(t):
        for i in range(5):
            t = (t * 1.5 + i).exp().log() - t
        return (t.sum(), t)

    with modes.eager_mode("fuse"):
        total, out = loop(y)
        assert counters.launches == 0, "nothing runs before the host looks"
        got = total.item()
    want, want_out = loop(x)
    assert got == pytest.approx(want.item(), rel=1e-5)
    assert counters.flushes - start_flushes == 1
    assert counters.launches == 1
    torch.testing.assert_close(out.cpu(), want_out, rtol=1e-5, atol=1e-5)


def test_fuse_second_turn_compiles_nothing(counters):
    x = torch.rand(16).to("tpu")
    with modes.eager_mode("fuse"):
        for turn in range(3):
            (x * 2 + turn).tanh().sum().item()
            if turn == 0:
                counters.reset()
    assert counters.compiles == 0
    assert counters.disk_hits == 0


def test_fuse_in_place_and_views():
    x = torch.arange(12.0).reshape(3, 4)
    y = x.clone().to("tpu")
    with modes.eager_mode("fuse"):
        old = y.clone()
        for t in (x, y):
            t[1].mul_(10)
            t.t()[2:].add_(1)
        part = y[:, 1:3]
        assert torch.equal(part.cpu(), x[:, 1:3])
        assert torch.equal(old.cpu(), torch.arange(12.0).reshape(3, 4))


def test_modes_nest_and_restore():
    assert modes.get_eager_mode() == "strict"
    with modes.eager_mode("fuse"):
        with modes.eager_mode("debug"):
            assert modes.get_eager_mode() == "debug"
        assert modes.get_eager_mode() == "fuse"
    assert modes.get_eager_mode() == "strict"
    with pytest.raises(ValueError, match="unknown eager mode 'lazy'"):
        modes.set_eager_mode("lazy")


def _mlp():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))


def test_compile_forward_and_backward(counters):
    model = _mlp()
    twin = _mlp().to("tpu")
    compiled = torch.compile(twin, backend="tpu", dynamic=False)
    x = torch.randn(4, 6)
    for turn in range(2):
        if turn == 1:
            counters.reset()
        model.zero_grad()
        twin.zero_grad()
        want = model(x)
        got = compiled(x.to("tpu"))
        want.square().sum().backward()
        got.square().sum().backward()
        torch.testing.assert_close(got.cpu(), want, rtol=1e-5, atol=1e-5)
        for p, q in zip(twin.parameters(), model.parameters(), strict=True):
            torch.testing.assert_close(p.grad.cpu(), q.grad, rtol=1e-5, atol=1e-5)
    assert counters.compiles == 0
    assert counters.fallbacks == 0


def test_compiled_graph_is_one_program():
    graph = compiler.CompiledGraph(lambda a, b: [(a @ b).relu() + 1.0, a.t()])
    a, b = torch.randn(3, 4), torch.randn(4, 5)
    out, view = graph(a.to("tpu"), b.to("tpu"))
    torch.testing.assert_close(out.cpu(), (a @ b).relu() + 1.0, rtol=1e-5, atol=1e-5)
    assert torch.equal(view.cpu(), a.t())
    assert len(graph.texts) == 1
    assert "stablehlo.dot_general" in graph.texts[0]


class Looped(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = _mlp()
        self.turns = 3

    def forward(self, x):
        y = self.layers(x)
        for i in range(self.turns):
            y = y * 0.5 + i
        if self.turns > 2:
            y = y.exp()
        return y


def test_script_compiles_an_if_and_a_loop(counters):
    model = Looped().eval()
    x = torch.randn(4, 6)
    want = model(x)
    scripted = torch.jit.script(model)
    scripted.to("tpu")
    compiled = compiler.compile_script(scripted)
    got = compiled(x.to("tpu"))
    torch.testing.assert_close(got.cpu(), want, rtol=1e-5, atol=1e-5)
    counters.reset()
    compiled(x.to("tpu"))
    assert counters.launches == 1


def test_script_refuses_training_mode():
    scripted = torch.jit.script(_mlp()).to("tpu").train()
    with pytest.raises(RuntimeError, match="eval mode"):
        compiler.compile_script(scripted)(torch.randn(4, 6).to("tpu"))


needs_libtpu = pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed"
)


def _demo_program(name: str, images: torch.Tensor) -> str:
    """The forward pass of one of the demo's models as StableHLO."""
    path = pathlib.Path(__file__).parents[2] / "examples" / "digits.py"
    spec = importlib.util.spec_from_file_location("digits", path)
    digits = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(digits)
    model = getattr(digits, name)().to("tpu").eval()
    names, values = zip(*model.state_dict().items(), strict=True)
    graph = compiler.CompiledGraph(
        lambda x, *state: [
            torch.func.functional_call(model, dict(zip(names, state, strict=True)), x)
        ]
    )
    graph(images.to("tpu"), *values)
    return graph.texts[0]


@needs_libtpu
@pytest.mark.parametrize("name", ["ConvNet", "VisionTransformer"])
def test_demo_compiles_ahead_for_v5e(name):
    text = _demo_program(name, torch.randn(32, 1, 8, 8))
    report = compiler.compile_ahead(text, "v5e:2x2")
    assert report["memory"]["arguments"] > 32 * 64 * 4
    assert report["cost"]["flops"] > 32 * 100_000


@needs_libtpu
def test_what_the_chip_cannot_hold_is_out_of_memory():
    huge = "tensor<200000x200000xf32>"
    text = f"""module {{ func.func public @main(%a: {huge}) -> {huge} {{
      %r = stablehlo.add %a, %a : {huge}
      func.return %r : {huge} }} }}"""
    with pytest.raises(RuntimeError, match="(?i)hbm|memory"):
        compiler.compile_ahead(text, "v5e:2x2")


def test_what_leaks_from_a_capture_says_so():
    leaked = []

    def fn(x):
        y = x + 1
        leaked.append(y)
        return [y * 2]

    compiler.CompiledGraph(fn)(torch.ones(3).to("tpu"))
    with pytest.raises(RuntimeError, match="captured"):
        leaked[0] + 1
    with pytest.raises(RuntimeError, match="captured|recorded"):
        leaked[0].cpu()
