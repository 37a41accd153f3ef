"""Reports of section Y: a backend from outside of PyTorch. Not Y5, Y8 and Y9, of custom kernels,
communication hooks and chips."""

import pathlib
import re
import warnings

import torch
from fresh_process import run


def test_y1_the_name_is_known_after_import_torch():
    out = run(
        """
        import torch
        assert torch.device("tpu").type == "tpu"
        assert torch.tpu.is_available() and torch.utils.backend_registration is not None
        assert torch._C._get_privateuse1_backend_name() == "tpu"
        print(torch.ones(2, device="tpu").sum().item())
        """,
        preamble="",
        TORCH_DEVICE_BACKEND_AUTOLOAD="1",
    )
    assert out.stdout.split()[-1] == "2.0"


def test_y2_backward_is_the_first_thing():
    out = run(
        """
        x = torch.ones(3, device="tpu", requires_grad=True)
        (x * 2).sum().backward()
        print(x.grad.tolist())
        print(torch.accelerator.current_accelerator())
        """
    )
    assert out.stdout.split("\n")[:2] == ["[2.0, 2.0, 2.0]", "tpu"]


def test_y3_the_import_changes_nothing_for_others():
    out = run(
        """
        import torch
        import torch._inductor.config
        before = torch.compiler.get_default_backend(), torch.get_default_device()
        add, compile_ = torch.add, torch.compile
        import torch_tpu
        assert (torch.compiler.get_default_backend(), torch.get_default_device()) == before
        assert torch.add is add and torch.compile is compile_
        assert torch.ones(2).device.type == "cpu"
        torch.manual_seed(3)
        print(before[0], torch.rand(1).item())
        """,
        preamble="",
    )
    name, number = out.stdout.split()
    torch.manual_seed(3)
    assert name == "inductor" and float(number) == torch.rand(1).item()


def test_y4_common_arguments_of_compile():
    x = torch.arange(4.0, device="tpu")
    for kwargs in (
        {},
        {"mode": "default"},
        {"mode": "reduce-overhead"},
        {"options": {"max_autotune": True}},
        {"dynamic": True},
        {"fullgraph": True},
    ):
        torch._dynamo.reset()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fn = torch.compile(lambda x: x.sin() * 2 + 1, backend="tpu", **kwargs)
            got = fn(x)
        assert torch.allclose(got.cpu(), x.cpu().sin() * 2 + 1, atol=1e-6), kwargs


def test_y6_an_operator_that_writes_its_argument():
    """Eagerly and compiled; the argument is the caller's own tensor."""

    @torch.library.custom_op("torch_tpu_reports::plus_one_", mutates_args=("x",))
    def plus_one_(x: torch.Tensor) -> None:
        x.add_(1)

    plus_one_.register_fake(lambda x: None)

    def step(x):
        plus_one_(x)
        return x * 2

    x = torch.zeros(3, device="tpu")
    assert step(x).tolist() == [2.0] * 3 and x.tolist() == [1.0] * 3
    torch._dynamo.reset()
    compiled = torch.compile(step, backend="tpu", dynamic=False)
    for n in (2.0, 3.0):
        assert compiled(x).tolist() == [2 * n] * 3
        assert x.tolist() == [n] * 3


def test_y7_one_tested_libtpu_is_named():
    """The extra, the guide and the message of what needs it name the same version."""
    root = pathlib.Path(__file__).parents[2]
    files = ("pyproject.toml", "docs/guide/install.md", "python/torch_tpu/compiler.py")
    named = [re.findall(r"libtpu==([\d.]+)", (root / name).read_text()) for name in files]
    assert all(named)
    assert len({version for versions in named for version in versions}) == 1
