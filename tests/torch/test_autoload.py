"""A bare `import torch` loads the backend, and importing changes nothing outside it. Reports Y1,
Y3."""

import os

import fresh_process
import pytest


@pytest.fixture
def installed(tmp_path):
    """A package index entry as pip writes it, in a folder of its own."""
    info = tmp_path / "torch_tpu_entry-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch-tpu-entry\nVersion: 0\n")
    (info / "entry_points.txt").write_text(
        "[torch.backends]\ntorch_tpu = torch_tpu:_autoload_entry\n"
    )
    import torch_tpu

    package = os.path.dirname(os.path.dirname(torch_tpu.__file__))
    return os.pathsep.join([str(tmp_path), package])


def test_y1_bare_import_torch(installed):
    fresh_process.run(
        """
        import torch
        assert torch.ones(2).to("tpu").device == torch.device("tpu:0")
        import torch_tpu, os
        assert "TORCH_DEVICE_BACKEND_AUTOLOAD" not in os.environ
        """,
        preamble="",
        PYTHONPATH=installed,
        TORCH_DEVICE_BACKEND_AUTOLOAD=None,
    )


def test_switched_off(installed):
    fresh_process.run(
        """
        import os, torch
        assert not hasattr(torch, "tpu")
        import torch_tpu
        assert torch.tpu.is_available() and os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] == "0"
        """,
        preamble="",
        PYTHONPATH=installed,
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )


def test_y3_import_changes_nothing_else():
    import torch

    assert torch.get_default_device().type == "cpu"
    assert torch.compiler.get_default_backend() == "inductor"
    assert torch.get_autocast_dtype("cpu") == torch.bfloat16
    assert torch.get_autocast_dtype("cuda") == torch.float16
    assert repr(torch.ones(1)) == "tensor([1.])"

    def scripted(x: torch.Tensor):
        with torch.autocast("cpu"):
            return torch.mm(x, x)

    assert torch.jit.script(scripted)(torch.ones(2, 2)).dtype == torch.bfloat16


def test_another_backend_in_the_process():
    fresh_process.run(
        """
        import torch
        torch.utils.rename_privateuse1_backend("other")
        try:
            import torch_tpu
        except ImportError as e:
            assert "other" in str(e) and "TORCH_DEVICE_BACKEND_AUTOLOAD" in str(e)
        else:
            raise AssertionError("two backends in one process")
        """,
        preamble="",
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )


def test_the_first_operators_do_not_import_the_compiler():
    fresh_process.run("""
        x = torch.ones(4, device="tpu")
        y = (x + x).exp().softmax(0).sum() * 2
        assert y.item() == 2
        assert "torch._dynamo" not in sys.modules
        # Once it is there, PyTorch's meta kernels are hidden from it as ever.
        compiled = torch.compile(lambda t: torch.nn.functional.gelu(t + 1), backend="tpu")
        assert torch.allclose(compiled(x).cpu(), torch.nn.functional.gelu(x.cpu() + 1))
        x.view(2, 2) - x[:2]
    """)
