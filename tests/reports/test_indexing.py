"""Reports F1-F8: gathers, scatters and their bounds."""

import pytest
import torch
from oracle import check


def test_f1_out_of_range_gather_raises():
    x = torch.arange(3.0).to("tpu")
    with pytest.raises(IndexError, match=r"index 7 is out of bounds for dimension 0 with size 3"):
        x.gather(0, torch.tensor([0, 7]).to("tpu")).cpu()
    assert x.cpu().tolist() == [0, 1, 2]


def test_f3_a_bad_row_changes_nothing_else():
    x = torch.zeros(2, 3).to("tpu")
    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        x.scatter_(1, torch.tensor([[3], [1]]).to("tpu"), 5.0).cpu()
    assert x.cpu().tolist() == [[0, 0, 0], [0, 5, 0]]


def test_f4_int64_arange_indexes_every_element():
    check(lambda x, i: x[i], torch.full((10,), 5.0), torch.arange(10))


def test_f5_gather_respects_the_batch():
    x = torch.tensor([[1, 2, 3], [3, 4, 5]])
    check(lambda x, i: torch.take_along_dim(x, i, 1), x, torch.tensor([[1, 2], [0, 1]]))


def test_f6_masked_write_reaches_every_element():
    def write(x):
        x[x == 2] = -1
        return x

    assert write(torch.tensor([[1, 2, 2], [1, 2, 3]]).to("tpu")).tolist() == [
        [1, -1, -1],
        [1, -1, 3],
    ]


def test_f7_index_copy_with_repeats_takes_the_last():
    x, index, source = torch.zeros(5), torch.tensor([1, 3, 1, 3, 0]), torch.arange(1.0, 6.0)
    check(lambda x, i, s: x.index_copy(0, i, s), x, index, source)


@pytest.mark.parametrize("n", [64, 256])
def test_f8_gather_is_exact(n):
    torch.manual_seed(0)
    check(
        lambda x, i: x.gather(1, i), torch.arange(2.0 * n).reshape(2, n), torch.randint(n, (2, n))
    )


def test_negative_indices_count_from_the_end():
    x = torch.arange(3).to("tpu")
    assert x[-1].item() == 2
    with pytest.raises(IndexError):
        x[-4]
    with pytest.raises(IndexError, match="index -4 is out of bounds"):
        x[torch.tensor([-4]).to("tpu")].cpu()


def test_embedding_takes_no_negative_index():
    weight = torch.randn(3, 2).to("tpu")
    with pytest.raises(IndexError, match="index -1 is out of bounds"):
        torch.nn.functional.embedding(torch.tensor([0, -1]).to("tpu"), weight).cpu()


def test_f2_far_out_of_range_gather_raises():
    x = torch.zeros(256, device="tpu")
    with pytest.raises(IndexError, match="256"):
        x[torch.arange(65536, device="tpu")]
        torch.tpu.synchronize()
