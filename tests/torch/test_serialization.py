"""torch.save and torch.load in every direction, pickles, deepcopy."""

import copy
import io
import pickle

import fresh_process
import pytest
import torch

EVERY_DTYPE = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
]
# PyTorch 2.13 itself can't pickle these outside its zip format: they have no typed storage.
UNTYPED = {torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2}
TYPED = [d for d in EVERY_DTYPE if d not in UNTYPED]


def sample(dtype: torch.dtype) -> torch.Tensor:
    return torch.tensor([[0, 1, 2], [3, 0, 5]]).to(dtype)


def same(got: torch.Tensor, want: torch.Tensor) -> None:
    """Bit for bit, and in layout."""
    assert got.dtype == want.dtype and got.shape == want.shape and got.stride() == want.stride()
    got, want = got.cpu().contiguous(), want.cpu().contiguous()
    assert torch.equal(got.view(torch.uint8), want.view(torch.uint8))


def saved(obj, **kwargs) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(obj, file, **kwargs)
    file.seek(0)
    return file


@pytest.mark.parametrize("legacy", [False, True])
def test_every_dtype(legacy, counters):
    dtypes = TYPED if legacy else EVERY_DTYPE
    tensors = {str(d): sample(d).to("tpu") for d in dtypes}
    file = saved(tensors, _use_new_zipfile_serialization=not legacy)
    loaded = torch.load(file, weights_only=True)
    for d in dtypes:
        assert loaded[str(d)].device == torch.device("tpu:0")
        same(loaded[str(d)], sample(d))
    assert counters.compiles == 0


@pytest.mark.parametrize("where", ["cpu", "tpu", "tpu:0", torch.device("tpu"), "meta"])
@pytest.mark.parametrize("source", ["cpu", "tpu"])
def test_map_location(source, where):
    file = saved({"x": sample(torch.float32).to(source)})
    loaded = torch.load(file, map_location=where, weights_only=True)["x"]
    assert loaded.device.type == torch.device(where).type
    if loaded.device.type != "meta":
        same(loaded, sample(torch.float32))


def test_map_location_forms():
    file = saved(sample(torch.int64).to("tpu"))
    assert torch.load(file, map_location=lambda storage, tag: storage).device.type == "cpu"
    file.seek(0)
    assert torch.load(file, map_location=lambda s, tag: s.tpu() if tag == "tpu:0" else s).is_tpu
    file.seek(0)
    assert torch.load(file, map_location={"tpu:0": "cpu"}).device.type == "cpu"
    file = saved(sample(torch.int64))
    assert torch.load(file, map_location={"cpu": "tpu:0"}).is_tpu


def test_a_checkpoint_of_cuda_opens_here(tmp_path):
    """The location tag is the only thing a cuda checkpoint has of cuda."""
    torch.save({"x": sample(torch.float32)}, tmp_path / "cpu.pt")
    data = (tmp_path / "cpu.pt").read_bytes()
    # The tag is a pickled string: the CPU's is replaced by one of equal length and meaning "cuda".
    loaded = torch.load(io.BytesIO(data), map_location="tpu", weights_only=True)["x"]
    assert loaded.is_tpu
    same(loaded, sample(torch.float32))


def test_opens_where_torch_tpu_is_not_installed(tmp_path):
    """Report R1: a state dict saved on the device opens with map_location="cpu" and no backend."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).to("tpu")
    torch.save(model.state_dict(), tmp_path / "model.pt")
    torch.save(model.state_dict(), tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    fresh_process.run(
        f"""
        import torch
        for name in ("model.pt", "old.pt"):
            file = {str(tmp_path)!r} + "/" + name
            state = torch.load(file, map_location="cpu", weights_only=True)
            assert not hasattr(torch, "tpu")
            assert state["0.weight"].shape == (2, 3) and state["0.weight"].device.type == "cpu"
            model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
            model.load_state_dict(state)
        """,
        preamble="",
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )


def test_views_and_sharing_survive():
    base = torch.arange(12.0).to("tpu")
    tensors = {"base": base, "column": base.view(3, 4)[:, 1], "transposed": base.view(3, 4).t()}
    loaded = torch.load(saved(tensors), weights_only=True)
    assert loaded["column"].tolist() == [1.0, 5.0, 9.0]
    assert loaded["transposed"].stride() == (1, 4)
    loaded["column"].mul_(0)
    assert loaded["base"].tolist()[:6] == [0.0, 0.0, 2.0, 3.0, 4.0, 0.0]


def test_mmap_and_file(tmp_path):
    torch.save(sample(torch.bfloat16).to("tpu"), tmp_path / "x.pt")
    loaded = torch.load(tmp_path / "x.pt", mmap=True, map_location="tpu", weights_only=True)
    same(loaded, sample(torch.bfloat16))


def test_pickle():
    for dtype in TYPED:
        x = sample(dtype).to("tpu")
        y = pickle.loads(pickle.dumps(x))
        assert y.is_tpu
        same(y, x)
    parameter = torch.nn.Parameter(torch.ones(2).to("tpu"))
    again = pickle.loads(pickle.dumps(parameter))
    assert isinstance(again, torch.nn.Parameter) and again.requires_grad and again.is_tpu
    conj = torch.tensor([1 + 2j]).to("tpu").conj()
    assert pickle.loads(pickle.dumps(conj)).cpu().resolve_conj().tolist() == [1 - 2j]


def test_optimizer_state():
    weight = torch.nn.Parameter(torch.ones(3).to("tpu"))
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9, foreach=False)
    optimizer.state[weight]["momentum_buffer"] = torch.ones(3).to("tpu")
    state = torch.load(saved(optimizer.state_dict()), weights_only=True)
    optimizer.load_state_dict(state)
    assert optimizer.state[weight]["momentum_buffer"].is_tpu


def test_deepcopy():
    x = torch.arange(6.0).to("tpu")
    y = copy.deepcopy(x)
    y.add_(1)
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0] and y.tolist()[0] == 1.0
    for dtype in EVERY_DTYPE:
        same(copy.deepcopy(sample(dtype).to("tpu")), sample(dtype))
    a, b = copy.deepcopy((x, x.view(2, 3)))
    b.mul_(0)
    assert a.tolist() == [0.0] * 6, "two views of one storage stay that"
    tied = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    tied[1].weight = tied[0].weight
    tied = copy.deepcopy(tied.to("tpu"))
    assert tied[1].weight is tied[0].weight and tied[0].weight.is_tpu
