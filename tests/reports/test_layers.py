"""Reports J1-J3, K1-K6, L1-L7, M1-M4, N1-N5: layers, losses and their gradients."""

import contextlib

import pytest
import torch
import torch.nn.functional as F
from oracle import check, to_tpu


def grads(fn, *tensors):
    """The gradients of the sum of fn's result, on the CPU and on tpu, compared."""

    def run(*args):
        leaves = [a.detach().requires_grad_() if a.is_floating_point() else a for a in args]
        fn(*leaves).sum().backward()
        return tuple(a.grad for a in leaves if a.is_floating_point())

    check(run, *tensors, strides=False)


def test_j1_the_padding_row_collects_no_gradient():
    weight = to_tpu(torch.randn(5, 3)).requires_grad_()
    F.embedding(torch.tensor([0, 1, 1, 2]).to("tpu"), weight, padding_idx=0).sum().backward()
    assert weight.grad[:, 0].tolist() == [0, 2, 1, 0, 0]


def test_k1_conv_on_a_channel_slice_of_channels_last():
    torch.manual_seed(0)
    x = torch.randn(1, 2, 1, 2).to(memory_format=torch.channels_last)[:, :1]
    check(lambda x, w: F.conv2d(x, w), x, torch.randn(1, 1, 1, 1), strides=False)


def test_k2_transposed_conv1d():
    torch.manual_seed(0)
    x, w = torch.randn(1, 16, 45), torch.randn(16, 4, 16) / 8
    check(lambda x, w: F.conv_transpose1d(x, w, stride=8, padding=4), x, w)


def test_k3_depthwise_transposed_conv():
    torch.manual_seed(0)
    x, w = torch.randn(1, 4, 5), torch.randn(4, 1, 3)
    out = check(lambda x, w: F.conv_transpose1d(x, w, stride=2, output_padding=1, groups=4), x, w)
    assert out is None or out.shape[-1] == 12


def test_k4_conv1d_backward_on_a_transposed_input():
    torch.manual_seed(0)
    x, w = torch.randn(2, 6, 4), torch.randn(3, 4, 3)
    grads(lambda x, w: F.conv1d(F.layer_norm(x, (4,)).transpose(1, 2), w), x, w)


def test_k5_average_pool_gradient_of_the_last_window():
    x = torch.arange(6.0).reshape(1, 1, 6)
    grads(lambda x: F.avg_pool1d(x, 3, 2, ceil_mode=True), x)


@pytest.mark.parametrize("mode", ["border", "reflection"])
def test_k6_grid_sample_gradient_on_the_edge(mode):
    x = torch.arange(25.0).reshape(1, 1, 5, 5)
    grid = F.affine_grid(torch.eye(2, 3)[None], (1, 1, 5, 5), align_corners=True)
    grads(lambda x, g: F.grid_sample(x, g, padding_mode=mode, align_corners=True), x, grid)


def test_l2_layer_norm_of_zeros_in_half():
    x = torch.zeros(1, 10, dtype=torch.half).to("tpu")
    assert F.layer_norm(x, (10,), eps=1e-12).cpu().tolist() == [[0.0] * 10]


def test_l3_half_layer_norm_accumulates_in_float32():
    torch.manual_seed(0)
    x = torch.randn(1, 5, 128)
    want = F.layer_norm(x.half().float(), (128,))
    got = F.layer_norm(x.half().to("tpu"), (128,)).float().cpu()
    torch.testing.assert_close(got, want, rtol=1e-3, atol=2e-3)


def test_l4_group_norm_gradients_stay_finite():
    torch.manual_seed(0)
    grads(lambda x: x + F.group_norm(x + F.group_norm(x, 2), 2), torch.randn(2, 4, 3))


def test_l5_batch_norm_half_input_float_statistics():
    torch.manual_seed(0)
    x = torch.randn(2, 3, 4).bfloat16()
    mean, var = torch.zeros(3), torch.ones(3)
    out = F.batch_norm(x.to("tpu"), mean.to("tpu"), var.to("tpu"), training=True)
    assert out.dtype == torch.bfloat16
    want = F.batch_norm(x.float(), mean, var, training=True)
    torch.testing.assert_close(out.float().cpu(), want, rtol=2e-2, atol=2e-2)


def test_l6_one_channel_gradients_have_one_element():
    torch.manual_seed(0)
    w, b = torch.ones(1), torch.zeros(1)
    grads(
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), torch.randn(2, 1, 3), w, b
    )


def test_l7_huge_inputs_give_no_nan():
    x = torch.tensor([[1e30, -1e30, 1e30, -1e30]]).to("tpu")
    assert not torch.isnan(F.layer_norm(x, (4,)).cpu()).any()


def test_m1_bool_and_additive_masks_agree():
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, 8, 4) for _ in range(3))
    mask = torch.arange(8)[None, None, None, :] < 5
    additive = torch.zeros(1, 1, 1, 8).masked_fill(~mask, float("-inf"))
    check(
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), q, k, v, mask, strides=False
    )
    check(
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m),
        q,
        k,
        v,
        additive,
        strides=False,
    )


def test_m2_fully_masked_rows():
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 1, 4, 4) for _ in range(3))
    mask = torch.ones(4, 4, dtype=torch.bool)
    mask[1] = False
    check(
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), q, k, v, mask, strides=False
    )
    grads(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, mask.to(q.device)), q, k, v)


def test_n1_the_mean_leaves_ignored_rows_out():
    logits, target = torch.ones(3, 5), torch.tensor([-1, -1, 3])
    check(lambda x, t: F.cross_entropy(x, t, ignore_index=-1), logits, target)


def test_n2_all_targets_ignored():
    logits, target = torch.randn(3, 5), torch.full((3,), -100)
    check(F.cross_entropy, logits, target)
    grads(lambda x: F.cross_entropy(x, target.to(x.device)), logits)


def test_n3_a_negative_target_raises():
    with pytest.raises(IndexError, match="index -1 is out of bounds"):
        F.cross_entropy(torch.randn(3, 5).to("tpu"), torch.tensor([-1, -1, 3]).to("tpu")).cpu()


def test_n4_smooth_l1_uses_the_incoming_gradient():
    x = to_tpu(torch.tensor([0.5, 2.0])).requires_grad_()
    (3 * F.smooth_l1_loss(x, torch.zeros(2).to("tpu"), reduction="none")).sum().backward()
    assert x.grad.tolist() == [1.5, 3.0]


def test_n5_int32_targets_give_the_right_gradient():
    torch.manual_seed(0)
    logits, target = torch.randn(2, 3), torch.tensor([0, 2])
    want = logits.clone().requires_grad_()
    F.cross_entropy(want, target).backward()
    got = to_tpu(logits).requires_grad_()
    F.cross_entropy(got, target.int().to("tpu")).backward()
    torch.testing.assert_close(got.grad.cpu(), want.grad)


def test_j2_the_compiled_embedding_keeps_its_padding():
    torch._dynamo.reset()
    layer = torch.nn.Embedding(5, 3, padding_idx=0).to("tpu")
    ids = torch.tensor([0, 1, 1, 2]).to("tpu")
    torch.compile(lambda i: layer(i).sum(), backend="tpu", dynamic=False)(ids).backward()
    assert layer.weight.grad.sum(1).tolist() == [0.0, 6.0, 3.0, 0.0, 0.0]


def test_j3_a_model_with_an_embedding_moves():
    model = torch.nn.Sequential(torch.nn.Embedding(10, 4), torch.nn.Linear(4, 2))
    ids = torch.tensor([[1, 2], [9, 0]])
    want = model(ids)
    assert torch.allclose(model.to("tpu")(ids.to("tpu")).cpu(), want, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_l1_half_input_with_float32_weights(dtype):
    x, w, b = torch.randn(4, 8, dtype=dtype), torch.rand(8) + 0.5, torch.rand(8)
    results = []
    for device in ("cpu", "tpu"):
        a, c, d = (t.to(device).detach().requires_grad_() for t in (x, w, b))
        y = torch.nn.functional.layer_norm(a, (8,), c, d)
        y.backward(torch.ones_like(y) * torch.arange(8, dtype=dtype, device=device))
        kinds = [t.dtype for t in (y, a.grad, c.grad, d.grad)]
        assert kinds == [dtype, dtype, torch.float32, torch.float32]
        results.append([t.detach().float().cpu() for t in (y, a.grad, c.grad, d.grad)])
    for want, got in zip(*results, strict=True):
        assert torch.allclose(got, want, rtol=2e-2, atol=2e-2)


def test_m3_m4_fused_and_math_attention_agree():
    """At every setting of float32 products, with gradients, in float32 and bfloat16."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def run(q, k, v, backend):
        leaves = [t.to("tpu").requires_grad_() for t in (q, k, v)]
        with sdpa_kernel(backend) if backend else contextlib.nullcontext():
            out = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=True)
            out.sum().backward()
        return [t.detach().float().cpu() for t in (out, *(leaf.grad for leaf in leaves))]

    q, k, v = (torch.randn(1, 2, 8, 16) for _ in range(3))
    before = torch.get_float32_matmul_precision()
    try:
        for precision in ("highest", "high"):
            torch.set_float32_matmul_precision(precision)
            for dtype, close in ((torch.float32, 1e-5), (torch.bfloat16, 5e-2)):
                a = [t.to(dtype) for t in (q, k, v)]
                ways = zip(run(*a, None), run(*a, SDPBackend.MATH), strict=True)
                for fused, math in ways:
                    assert fused.isfinite().all()
                    assert torch.allclose(fused, math, rtol=close, atol=close)
    finally:
        torch.set_float32_matmul_precision(before)
