"""Reports of section C: in-place writes, views, copies."""

import pytest
import torch
from oracle import check


def test_c1_rebinding_data_is_no_write():
    x = torch.zeros(10).to("tpu")
    view = x.view(2, 5)
    x.data = x.data + 1
    assert view.tolist() == [[0.0] * 5] * 2 and x.tolist() == [1.0] * 10
    view = x.view(2, 5)
    x.data.add_(1)
    assert view.tolist() == [[2.0] * 5] * 2


def test_c2_data_of_another_shape():
    p = torch.nn.Parameter(torch.ones(3).to("tpu"))
    p.data = torch.zeros(5).to("tpu")
    assert p.shape == (5,)


def test_c3_write_through_as_strided():
    x = torch.ones(4).to("tpu")
    x.as_strided((2,), (2,))[0] = -1
    assert x.tolist() == [-1.0, 1.0, 1.0, 1.0]


def test_c4_as_strided_of_a_slice():
    x = torch.arange(5).to("tpu")[2:]
    assert x.as_strided((2,), (1,)).tolist() == [2, 3]
    assert x.as_strided((4,), (1,), 0).tolist() == [0, 1, 2, 3]


def test_c6_out_into_a_view():
    flat = torch.zeros(6).to("tpu")
    source = torch.arange(8.0).view(4, 2).to("tpu")
    torch.index_select(source, 0, torch.tensor([3, 0, 1]).to("tpu"), out=flat.view(3, 2))
    assert flat.tolist() == [6.0, 7.0, 0.0, 1.0, 2.0, 3.0]


def test_c7_in_place_on_a_transpose():
    x = torch.arange(6.0).view(2, 3).to("tpu")
    y = x.t()
    y.mul_(2)
    assert y.stride() == (1, 3) and x.tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]


def test_c9_add_into_an_expanded_tensor_raises():
    x = torch.arange(4.0).to("tpu").expand(32, 4)
    with pytest.raises(RuntimeError, match=r"(?i)single memory location|overlap"):
        x[:, 2:].add_(1)


def test_c10_one_element_of_an_expanded_tensor():
    x = torch.arange(6.0).to("tpu").expand(2, 6)
    x[0, 0] = 5
    assert x.tolist() == [[5.0, 1.0, 2.0, 3.0, 4.0, 5.0]] * 2


def test_c11_addcdiv_on_transposed_tensors():
    tensors = [torch.rand(2, 3).add(0.5).t() for _ in range(3)]
    check(lambda a, b, c: a.addcdiv_(b, c, value=0.3), *tensors)


def test_c12_stack_of_strided_slices():
    check(lambda x: torch.stack((-x[..., 1::2], x[..., ::2]), -1), torch.arange(16.0).view(2, 8))
    check(lambda x: torch.cat((x[..., 1::2], x[..., ::2]), -1), torch.arange(16.0).view(2, 8))


def test_c13_nothing_outside_the_output_is_written():
    out = torch.full((300, 60), 7, dtype=torch.uint8).to("tpu")
    x = torch.rand(300, 464).to("tpu")
    out[:, 5:51].copy_(torch.isfinite(x[:, 4:50]))
    host = out.cpu()
    assert (host[:, 5:51] == 1).all() and (host[:, :5] == 7).all() and (host[:, 51:] == 7).all()


def test_c14_copy_into_a_part_of_a_host_tensor():
    host = torch.zeros(6)
    host[2:4] = torch.tensor([1.0, 2.0]).to("tpu")
    assert host.tolist() == [0.0, 0.0, 1.0, 2.0, 0.0, 0.0]


def test_c15_sources_freed_after_a_non_blocking_upload():
    parts = [torch.full((1000,), float(i)).to("tpu", non_blocking=True) for i in range(3)]
    assert torch.cat(parts).cpu()[::1000].tolist() == [0.0, 1.0, 2.0]


def test_c16_name_overwritten_after_a_non_blocking_upload():
    x = torch.arange(10)
    x = x.to("tpu", non_blocking=True)
    assert x.tolist() == list(range(10))


def test_c17_unaligned_copy():
    host = torch.zeros(4, dtype=torch.bool)
    host[1:2].copy_(torch.tensor([False, True, False, False]).to("tpu")[1:2])
    assert host.tolist() == [False, True, False, False]


def test_c20_index_copy_with_a_narrowed_index():
    index = torch.randperm(6)
    source = torch.rand(3, 4)
    x = torch.zeros(6, 4).to("tpu")
    x.index_copy_(0, index.to("tpu").narrow(0, 2, 3), source.to("tpu"))
    assert torch.equal(x.cpu()[index[2:5]], source)


def test_c21_transposed_convolution_of_channels_last_weights():
    weight = torch.rand(1, 1, 2, 2).to(memory_format=torch.channels_last)
    check(
        lambda x, w: torch.nn.functional.conv_transpose2d(x, w),
        torch.ones(1, 1, 2, 2),
        weight,
        strides=False,
    )


@pytest.mark.strict
def test_a_loop_over_rows_does_not_copy_the_base():
    """x[i] = f(x[i-1]): donated, and as many programs for 50 rows as for 5."""
    import torch_tpu

    def loop(n):
        x = torch.zeros(n, 64).to("tpu")
        x[0].add_(1)
        for i in range(1, n):
            x[i] = x[i - 1] * 1.5
        return x

    loop(60).cpu()
    before = torch_tpu.counters()
    x = loop(60)
    x.cpu()
    after = torch_tpu.counters()
    assert after["compiles"] == before["compiles"]
    assert after["donations"] - before["donations"] >= 50
    assert torch.isfinite(x.cpu()).all()
