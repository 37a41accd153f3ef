"""Bad indices in strict mode: reported at the next synchronise or host read, with the operator's
name; never clamped, never dropped in silence. And a tensor used after its program failed."""

import pytest
import torch

import torch_tpu


@pytest.fixture
def x():
    return torch.arange(6.0).view(3, 2).to("tpu")


def bad():
    return torch.tensor([0, 7]).to("tpu")


def test_read_reports_at_the_host_read(x):
    y = x.index_select(0, bad())
    with pytest.raises(IndexError, match=r"(?s)index_select.*7.*3|7.*3.*index_select"):
        y.cpu()
    assert x.cpu().shape == (3, 2), "once reported, it is over"


def test_read_reports_at_synchronise(x):
    x[bad()]
    with pytest.raises(IndexError, match="7"):
        torch.tpu.synchronize()
    torch.tpu.synchronize()


def test_any_host_read_reports(x):
    x[bad()]
    with pytest.raises(IndexError):
        torch.ones(2).to("tpu").add_(1).tolist()


def test_event_wait_reports(x):
    x[bad()]
    event = torch.tpu.Event()
    event.record()
    with pytest.raises(IndexError):
        event.synchronize()


def test_a_write_with_a_bad_index_changes_nothing_there(x):
    before = x.cpu()
    x.index_copy_(0, bad(), torch.full((2, 2), -1.0).to("tpu"))
    with pytest.raises(IndexError):
        torch.tpu.synchronize()
    assert torch.equal(x.cpu()[1:], before[1:])


def test_negative_indices(x):
    assert x[torch.tensor([-1, 0]).to("tpu")].tolist() == [[4.0, 5.0], [0.0, 1.0]]
    x[torch.tensor([-4]).to("tpu")]
    with pytest.raises(IndexError, match="-4"):
        torch.tpu.synchronize()


def test_host_indices_are_checked_too(x):
    x[torch.tensor([3])]
    with pytest.raises(IndexError, match="3"):
        torch.tpu.synchronize()
    with pytest.raises(IndexError):
        x[5]  # PyTorch's own check, at once


def test_debug_mode_reports_at_once(x):
    with torch_tpu.eager_mode("debug"), pytest.raises(IndexError):
        x[bad()]


@pytest.mark.parametrize("mode", ["strict", "fuse", "debug"])
def test_the_error_names_the_line_of_its_own_call(mode):
    table = torch.rand(5, 3).to("tpu")

    def good():
        return torch.nn.functional.embedding(torch.tensor([0, 4]).to("tpu"), table)

    def bad():
        return torch.nn.functional.embedding(torch.tensor([0, 9]).to("tpu"), table)

    with torch_tpu.eager_mode(mode):
        good().cpu()
        with pytest.raises(IndexError) as error:
            bad().cpu()
    line = bad.__code__.co_firstlineno + 1
    assert f"test_index_errors.py:{line}" in str(error.value)


def test_each_call_of_a_recorded_piece_has_its_own_line():
    table = torch.rand(5, 3).to("tpu")
    good, bad = torch.tensor([1, 2]).to("tpu"), torch.tensor([0, 9]).to("tpu")
    with torch_tpu.eager_mode("fuse"):
        first = table[good]
        second = table[bad]
        with pytest.raises(IndexError) as error:
            (first + second).cpu()
    here = test_each_call_of_a_recorded_piece_has_its_own_line.__code__.co_firstlineno
    assert f"test_index_errors.py:{here + 5}" in str(error.value)


def test_checked_values_name_their_own_line_too():
    p = torch.tensor([0.5, 0.5]).to("tpu")
    torch.bernoulli(p).cpu()
    with pytest.raises(RuntimeError) as error:
        torch.bernoulli(p + 1).cpu()
    here = test_checked_values_name_their_own_line_too.__code__.co_firstlineno
    assert f"test_index_errors.py:{here + 4}" in str(error.value)
