"""Activations, normalisation, attention, losses, embedding, dropout, distances against the CPU."""

import math
import warnings

import pytest
import torch
import torch.nn.functional as F
from oracle import check, check_raises, layouts, to_tpu

SPECIAL = torch.tensor(
    [[-math.inf, -30.0, -3.0, -1.5, -0.5, -0.0], [0.0, 0.5, 1.0, 3.0, 30.0, math.inf]]
)


def draw(*shape, dtype=torch.float32, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)


ACTIVATIONS = {
    "relu": F.relu,
    "relu6": F.relu6,
    "hardtanh": lambda x: F.hardtanh(x, -0.7, 1.3),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "elu": lambda x: F.elu(x, 1.5),
    "celu": lambda x: F.celu(x, 1.3),
    "selu": F.selu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "mish": F.mish,
    "softplus": lambda x: F.softplus(x, 2.0, 5.0),
    "softshrink": lambda x: F.softshrink(x, 0.4),
    "hardshrink": lambda x: F.hardshrink(x, 0.4),
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "logsigmoid": F.logsigmoid,
    "threshold": lambda x: F.threshold(x, 0.1, 20.0),
    "glu": lambda x: F.glu(x, 0),
    "rrelu_eval": F.rrelu,
}
IN_PLACE = [F.relu_, F.elu_, F.selu_, F.leaky_relu_, F.hardtanh_, torch.sigmoid_, F.celu_]
IN_PLACE_OPTION = [F.silu, F.mish, F.hardswish, F.hardsigmoid, F.relu6]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name, no_fallback):
    fn = ACTIVATIONS[name]
    check(fn, draw(4, 6), grad=True)
    check(fn, draw(4, 6, dtype=torch.bfloat16), grad=True)


@pytest.mark.parametrize("name", sorted(set(ACTIVATIONS) - {"glu"}))
def test_activation_special_values(name, no_fallback):
    # gelu(inf) is NaN in the CPU's kernel and inf here.
    check(ACTIVATIONS[name], SPECIAL.clamp(-50, 50) if "gelu" in name else SPECIAL)
    check(ACTIVATIONS[name], torch.tensor([math.nan, 1.0]))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
@pytest.mark.parametrize("name", ["relu", "gelu", "gelu_tanh", "silu", "softplus"])
def test_activation_dtypes(name, dtype, no_fallback):
    check(ACTIVATIONS[name], draw(4, 6, dtype=dtype), grad=True)


def test_kinks(no_fallback):
    # The derivative at a kink is a convention; it must be PyTorch's.
    x = torch.tensor([-3.0, -0.7, -0.4, 0.0, 0.1, 0.4, 1.3, 3.0, 6.0])
    for name in ACTIVATIONS:
        if name not in ("glu", "rrelu_eval"):
            check(ACTIVATIONS[name], x, grad=True)


def test_activation_layouts(no_fallback):
    for x in layouts(draw(4, 6)).values():
        check(F.gelu, x, grad=True)
        check(F.relu, x, grad=True)
    check(F.relu, torch.tensor(-1.0), grad=True)
    check(F.silu, torch.empty(0, 3), grad=True)


@pytest.mark.parametrize("fn", IN_PLACE, ids=lambda f: f.__name__)
def test_activation_in_place(fn, no_fallback):
    check(fn, draw(4, 6))


@pytest.mark.parametrize("fn", IN_PLACE_OPTION, ids=lambda f: f.__name__)
def test_activation_in_place_option(fn, no_fallback):
    check(lambda x: fn(x, inplace=True), draw(4, 6))


def test_activation_out(no_fallback):
    check(lambda x, out: torch._C._nn.gelu(x, out=out), draw(4, 6), torch.empty(4, 6))
    check(lambda x, out: torch._C._nn.softplus(x, out=out), draw(4, 6), torch.empty(6, 4).t())


def test_integer_activations(no_fallback):
    x = torch.tensor([-3, 0, 5])
    check(F.relu, x)
    check(F.relu, x.to(torch.uint8))
    check(lambda v: F.hardtanh(v, -1, 2), x)
    check(lambda v: F.threshold(v, 1, 7), x)
    check(torch.sigmoid, x)
    check_raises(F.relu, torch.tensor([True]))
    check_raises(F.gelu, x)


def test_prelu(no_fallback):
    check(lambda x, w: torch._prelu_kernel(x, w), draw(2, 3, 4), draw(2, 3, 4, seed=1), grad=True)


def test_rrelu_training(no_fallback):
    x = draw(64).to("tpu").requires_grad_()
    y = F.rrelu(x, 0.1, 0.3, training=True)
    (g,) = torch.autograd.grad(y, x, torch.ones(64).to("tpu"))
    slope, x, y = g.cpu(), x.detach().cpu(), y.detach().cpu()
    assert torch.equal(slope[x > 0], torch.ones(64)[x > 0])
    negative = slope[x <= 0]
    assert ((negative >= 0.1) & (negative < 0.3)).all() and negative.unique().numel() > 10
    torch.testing.assert_close(y, x * slope)


# --- Normalisation.


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_layer_norm(dtype, no_fallback):
    x, w, b = draw(2, 3, 8, dtype=dtype), draw(8, dtype=dtype, seed=1), draw(8, dtype=dtype, seed=2)
    # PyTorch's CPU keeps the statistics of half types in that type; ours are float32.
    close = {"rtol": 4e-2, "atol": 4e-2} if dtype == torch.bfloat16 else {}
    check(lambda x, w, b: F.layer_norm(x, [8], w, b), x, w, b, grad=True, **close)
    check(lambda x: F.layer_norm(x, [3, 8]), x, grad=True, **close)


def test_layer_norm_layouts(no_fallback):
    w, b = draw(6, seed=1), draw(6, seed=2)
    for x in layouts(draw(5, 6)).values():
        check(lambda x, w, b: F.layer_norm(x, [6], w, b, 0.1), x, w, b, grad=True)
    check(lambda x: F.layer_norm(x, [6]), torch.empty(0, 6), grad=True)
    # Far from zero the variance must not cancel.
    check(lambda x: F.layer_norm(x, [64]), draw(2, 64) * 0.1 + 1000, rtol=2e-3, atol=2e-3)


def test_layer_norm_mixed(no_fallback):
    x, w, b = draw(4, 8, dtype=torch.bfloat16), draw(8, seed=1), draw(8, seed=2)
    check(lambda x, w, b: F.layer_norm(x, [8], w, b), x, w, b, grad=True, rtol=4e-2, atol=4e-2)


def test_layer_norm_is_one_program(counters):
    x = draw(7, 9).to("tpu")
    kept = F.layer_norm(x, [9])
    torch.tpu.synchronize()
    start = counters.launches
    kept = F.layer_norm(x, [9])  # noqa: F841
    torch.tpu.synchronize()
    assert counters.launches - start == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rms_norm(dtype, no_fallback):
    x, w = draw(2, 3, 8, dtype=dtype), draw(8, dtype=dtype, seed=1)
    close = {"rtol": 5e-2, "atol": 5e-2} if dtype == torch.bfloat16 else {}
    check(lambda x, w: F.rms_norm(x, [8], w, 1e-5), x, w, grad=True, **close)
    check(lambda x: F.rms_norm(x, [8]), x, grad=True, **close)


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 5), (2, 3, 4, 4)])
def test_batch_norm(shape, no_fallback):
    args = (draw(*shape), draw(3, seed=1), draw(3, seed=2).abs(), draw(3, seed=3), draw(3, seed=4))
    for training in (True, False):

        def norm(x, mean, var, w, b, training=training):
            # clones: autograd inputs can't be written
            return F.batch_norm(x, mean.detach(), var.detach(), w, b, training, 0.3, 1e-3)

        # The statistics are inputs: check() compares what is in them afterwards.
        check(norm, *args, grad=True, rtol=1e-4, atol=1e-4)


def test_batch_norm_without_statistics(no_fallback):
    check(lambda x: F.batch_norm(x, None, None, training=True), draw(4, 3, 5), grad=True)


OUT_FORMS = {  # no meta kernel, or no row: PyTorch has only a kernel of the CPU's for them
    "mvlgamma": lambda x, out: torch.mvlgamma(x.abs() + 3, 2, out=out[0]),
    "narrow_copy": lambda x, out: torch.narrow_copy(x, 1, 0, 2, out=out[0]),
    "adaptive_avg_pool2d": lambda x, out: torch._C._nn.adaptive_avg_pool2d(x, 2, out=out[0]),
    "native_batch_norm": lambda x, out: torch.ops.aten.native_batch_norm.out(
        x, None, None, None, None, True, 0.1, 1e-3, out=out[0], save_mean=out[1],
        save_invstd=out[2],
    ),
    "_native_batch_norm_legit": lambda x, out: torch.ops.aten._native_batch_norm_legit.out(
        x, None, None, out[3], out[4], True, 0.1, 1e-3, out=out[0], save_mean=out[1],
        save_invstd=out[2],
    ),
    "_native_batch_norm_legit.no_stats": lambda x, out: (
        torch.ops.aten._native_batch_norm_legit.no_stats_out(
            x, None, None, True, 0.1, 1e-3, out=out[0], save_mean=out[1], save_invstd=out[2]
        )
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OUT_FORMS)
def test_out_form_without_a_row(name, no_fallback):
    def fn(x, mean, var):
        outs = [torch.empty(0, device=x.device) for _ in range(3)] + [mean, var]
        return OUT_FORMS[name](x, outs), outs

    check(fn, draw(2, 3, 4, 5), draw(3), draw(3).abs())


def test_batch_norm_half(no_fallback):
    stats = (torch.zeros(3), torch.ones(3), draw(3, seed=1), draw(3, seed=2))
    check(
        lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b, True),
        draw(4, 3, 5, dtype=torch.bfloat16),
        *stats,
    )


def test_batch_norm_channels_last(no_fallback):
    x = draw(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    check(lambda x: F.batch_norm(x, None, None, training=True), x, grad=True)


def test_batch_norm_momentum_compiles_once(counters):
    x, m, v = draw(4, 3).to("tpu"), torch.zeros(3).to("tpu"), torch.ones(3).to("tpu")
    F.batch_norm(x, m, v, training=True, momentum=0.1)
    start = counters.compiles
    F.batch_norm(x, m, v, training=True, momentum=0.25)
    assert counters.compiles == start


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_group_norm(dtype, no_fallback):
    x, w, b = draw(2, 4, 5, dtype=dtype), draw(4, dtype=dtype, seed=1), draw(4, dtype=dtype, seed=2)
    check(lambda x, w, b: F.group_norm(x, 2, w, b), x, w, b, grad=True)
    check(lambda x: F.group_norm(x, 4), x, grad=True)


def test_weight_norm_and_renorm(no_fallback):
    for dim, g in ((0, draw(4, 1, seed=1)), (1, draw(1, 3, seed=1))):
        norm = torch._weight_norm_interface
        check(lambda v, g, d=dim, f=norm: f(v, g, d)[0], draw(4, 3), g, grad=True)
    for p in (1, 2, 3, math.inf):
        check(lambda x, p=p: torch.renorm(x, p, 0, 1.5), draw(4, 6))
    check(lambda x: torch.renorm(x, 2, 0, 1.5), torch.complex(draw(4, 6), draw(4, 6, seed=1)))


# --- Attention.

fused = torch.ops.aten._scaled_dot_product_fused_attention_overrideable


def attention(q, k, v, bias=None, causal=False, scale=None):
    if q.device.type == "tpu":
        return fused(q, k, v, bias, 0.0, causal, False, scale=scale)[0]
    gqa = q.size(1) != k.size(1)
    math_form = torch.ops.aten._scaled_dot_product_attention_math
    return math_form(q, k, v, bias, 0.0, causal, None, scale=scale, enable_gqa=gqa)[0]


ATTENTION = {
    "plain": ((2, 4, 6, 8), (2, 4, 7, 8), (2, 4, 7, 10), None, {}),
    "causal": ((2, 4, 6, 8), (2, 4, 7, 8), (2, 4, 7, 8), None, {"causal": True}),
    "bias": ((2, 4, 6, 8), (2, 4, 7, 8), (2, 4, 7, 8), (2, 1, 1, 7), {"scale": 0.3}),
    "bias_2d": ((2, 4, 6, 8), (2, 4, 7, 8), (2, 4, 7, 8), (6, 7), {}),
    "grouped": ((2, 4, 6, 8), (2, 2, 6, 8), (2, 2, 6, 8), None, {"causal": True}),
}


@pytest.mark.parametrize("name", ATTENTION)
def test_attention(name, no_fallback):
    q, k, v, bias, options = ATTENTION[name]
    args = [draw(*s, seed=i) for i, s in enumerate((q, k, v))]
    if bias:
        args.append(draw(*bias, seed=3))
    check(lambda *a: attention(*a, **options), *args, grad=True, strides=False)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_attention_dtypes(dtype, no_fallback):
    args = [draw(1, 2, 6, 8, dtype=dtype, seed=i) for i in range(3)]
    check(lambda *a: attention(*a, causal=True), *args, grad=True, strides=False)


def test_attention_fully_masked_row(no_fallback):
    bias = torch.zeros(6, 6)
    bias[0] = -math.inf
    args = [draw(1, 2, 6, 8, seed=i) for i in range(3)]

    def fn(q, k, v):
        return attention(q, k, v, bias.to(q.device))

    out = fn(*(a.to("tpu") for a in args)).cpu()
    assert torch.equal(out[:, :, 0], torch.zeros(1, 2, 8))
    q, k, v = (to_tpu(a).requires_grad_() for a in args)
    y = fn(q, k, v)
    for g in torch.autograd.grad(y, (q, k, v), torch.ones(1, 2, 6, 8).to("tpu")):
        assert g.cpu().isfinite().all()


def test_attention_dropout_mask_is_that_of_the_backward(no_fallback):
    q, k = (draw(1, 1, 16, 8, seed=i).to("tpu") for i in range(2))
    v = torch.eye(16)[None, None].to("tpu").requires_grad_()
    out = fused(q, k, v, None, 0.5, False, False)[0]
    (g,) = torch.autograd.grad(out, v, torch.eye(16)[None, None].to("tpu"))
    kept = out.detach().cpu()
    assert 0.3 < (kept == 0).float().mean() < 0.7
    torch.testing.assert_close(g.cpu(), kept.transpose(-1, -2))


def test_masked_softmax(no_fallback):
    x, mask = draw(2, 3, 4), draw(2, 3, 4, seed=1) > 0.5
    check(lambda x: torch._masked_softmax(x, mask.to(x.device), 2, 2), x, grad=True)


# --- Losses.


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_elementwise_losses(reduction, no_fallback):
    a, b = draw(4, 6), draw(4, 6, seed=1)
    for loss in (F.mse_loss, F.smooth_l1_loss, F.huber_loss):
        check(lambda a, b, f=loss: f(a, b, reduction=reduction), a, b, grad=True)
    p, t, w = a.sigmoid(), b.sigmoid(), draw(6, seed=2).abs()
    for loss in (F.binary_cross_entropy, F.binary_cross_entropy_with_logits):
        check(lambda p, t, w, f=loss: f(p, t, w.detach(), reduction=reduction), p, t, w)
    check(lambda p, t: F.binary_cross_entropy(p, t.detach(), reduction=reduction), p, t, grad=True)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_nll_loss(reduction, no_fallback):
    x, t, w = draw(6, 5), torch.tensor([0, 4, -100, 2, 2, 1]), draw(5, seed=1).abs()

    def nll(x, t, w=None):
        return F.nll_loss(x, t, None if w is None else w.detach(), reduction=reduction)

    check(nll, x, t, grad=True)
    check(nll, x, t, w)
    check(nll, draw(2, 5, 3, 2), torch.randint(0, 5, (2, 3, 2)), w)
    half = x.bfloat16()
    check(lambda x, t: F.nll_loss(x, t, ignore_index=2, reduction=reduction), half, t.clamp(0))
    check(nll, draw(5), torch.tensor(3), grad=True)
    check(nll, torch.empty(0, 5), torch.empty(0, dtype=torch.long))
    check(nll, x, torch.full((6,), -100))


def test_nll_loss_backward_2d(no_fallback):
    t = torch.tensor([[[0, 4], [-100, 2]]])
    check(lambda x: F.nll_loss(x, t.to(x.device)), draw(1, 5, 2, 2), grad=True)


def test_nll_loss_bad_target(no_fallback):
    x = draw(3, 5)
    check_raises(F.nll_loss, x, torch.tensor([0, 5, 1]), match="5")
    check_raises(F.nll_loss, x, torch.tensor([0, -1, 1]))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_margin_losses(reduction, no_fallback):
    x, t, w = draw(4, 5), torch.tensor([0, 4, 2, 1]), draw(5, seed=1).abs()
    for p in (1, 2):
        check(
            lambda x, p=p: F.multi_margin_loss(
                x, t.to(x.device), p, 0.7, w.to(x.device), reduction=reduction
            ),
            x,
            grad=True,
        )
    labels = torch.tensor([[0, 3, -1, 2, 2], [-1, 0, 0, 0, 0], [4, 1, 2, 0, 3], [2, 2, -1, -1, -1]])
    check(
        lambda x: F.multilabel_margin_loss(x, labels.to(x.device), reduction=reduction),
        x,
        grad=True,
        strides=False,
    )
    check(lambda x: F.multilabel_margin_loss(x, labels[0].to(x.device), reduction=reduction), x[0])
    check_raises(lambda x: F.multilabel_margin_loss(x, labels[0].to(x.device)), x)


def test_ctc_loss(no_fallback):
    scores = draw(6, 3, 5).log_softmax(2)
    targets = torch.tensor([[1, 1, 2], [3, 4, 1], [2, 2, 2]])

    def ctc(x, reduction="none", **options):
        lengths = torch.tensor([6, 5, 2]), torch.tensor([3, 0, 2])
        return F.ctc_loss(x, targets.to(x.device), *lengths, reduction=reduction, **options)

    # The third sample is too short for its target: infinite, and without a gradient on request.
    check(lambda x: ctc(x, zero_infinity=True), scores, grad=True)
    check(lambda x: ctc(x), scores)
    check(lambda x: ctc(x, "mean", blank=4, zero_infinity=True), scores, grad=True)


# --- Embedding.


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_embedding(dtype, no_fallback):
    table, index = draw(7, 4, dtype=dtype), torch.tensor([[0, 6, 2], [2, 2, 1]])
    check(lambda w: F.embedding(index.to(w.device), w), table, grad=True)
    check(lambda w: F.embedding(index.to(w.device), w, padding_idx=2), table, grad=True)
    check(lambda w: F.embedding(index.to(w.device), w, scale_grad_by_freq=True), table, grad=True)
    check(lambda w: F.embedding(index.int().t().to(w.device), w), table)
    check(lambda w: F.embedding(torch.empty(0, dtype=torch.long).to(w.device), w), table, grad=True)


def test_embedding_bad_index(no_fallback):
    check_raises(lambda i, w: F.embedding(i, w), torch.tensor([0, 7]), draw(7, 4), match="7")
    check_raises(lambda i, w: F.embedding(i, w), torch.tensor([0, -1]), draw(7, 4))


def test_embedding_renorm(no_fallback):
    index = torch.tensor([0, 3, 3])
    check(lambda w: torch.embedding_renorm_(w, index.to(w.device), 1.0, 2.0), draw(5, 4))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag(mode, no_fallback):
    index, offsets = torch.tensor([1, 2, 4, 5, 4, 3, 2, 5]), torch.tensor([0, 3, 3, 6])

    def bag(w, **options):
        return F.embedding_bag(index.to(w.device), w, offsets.to(w.device), mode=mode, **options)

    check(bag, draw(6, 4), grad=True)
    check(lambda w: bag(w, padding_idx=4), draw(6, 4), grad=True)
    if mode == "sum":
        check(lambda w, s: bag(w, per_sample_weights=s), draw(6, 4), draw(8, seed=1), grad=True)


def test_embedding_bag_forward_with_sparse_gradients(no_fallback):
    index = torch.tensor([1, 2, 4, 5])
    offsets = torch.tensor([0, 3])
    fn = lambda w: F.embedding_bag(index.to(w.device), w, offsets.to(w.device), sparse=True)  # noqa: E731
    check(fn, draw(6, 4))
    with pytest.raises(NotImplementedError, match="sparse gradients"):
        fn(draw(6, 4).to("tpu").requires_grad_()).sum().backward()


def test_embedding_bag_of_many_bags(no_fallback):
    # Enough to search for each position's bag instead of counting; some bags are empty.
    index = torch.arange(2000) % 7
    offsets = torch.arange(1500) * 4 // 3 // 2 * 2
    check(
        lambda w: F.embedding_bag(index.to(w.device), w, offsets.to(w.device), mode="sum"),
        draw(7, 2),
        grad=True,
        rtol=1e-4,
        atol=1e-4,
    )


# --- Dropout and distances.


def test_dropout(no_fallback):
    x = torch.ones(1000).to("tpu").requires_grad_()
    y = F.dropout(x, 0.25, training=True)
    (g,) = torch.autograd.grad(y, x, torch.ones(1000).to("tpu"))
    kept = y.detach().cpu()
    torch.testing.assert_close(kept[kept != 0], torch.full_like(kept[kept != 0], 1 / 0.75))
    assert 180 < (kept == 0).sum() < 320
    assert torch.equal(g.cpu(), kept)
    assert not torch.equal(kept, F.dropout(x, 0.25).detach().cpu())


def test_dropout_rate_compiles_once(counters):
    x = torch.ones(10).to("tpu")
    F.dropout(x, 0.25)
    start = counters.compiles
    F.dropout(x, 0.5)
    assert counters.compiles == start


def test_native_dropout_in_evaluation(no_fallback):
    check(lambda x: torch.native_dropout(x, 0.5, False), draw(4, 6))


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, math.inf])
def test_distances(p, no_fallback):
    form = "donot_use_mm_for_euclid_dist"
    check(
        lambda a, b: torch.cdist(a, b, p, form),
        draw(2, 3, 4),
        draw(2, 5, 4, seed=1),
        grad=p > 0,
        strides=False,
    )
    check(lambda x: torch.pdist(x, p), draw(5, 4), grad=p > 0)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_transformer_in_inference(activation, norm_first, no_fallback):
    """torch.nn takes a path of its own there, and would make nested tensors of padding masks."""
    layer = torch.nn.TransformerEncoderLayer(
        16, 4, 32, batch_first=True, norm_first=norm_first, activation=activation
    )
    encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=not norm_first).eval()
    x, causal = draw(2, 5, 16), torch.nn.Transformer.generate_square_subsequent_mask(5)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in ({}, {"mask": causal}, {"src_key_padding_mask": padding},
                     {"mask": causal, "src_key_padding_mask": padding}):  # fmt: skip
            want = encoder.to("cpu")(x, **kind)
            got = encoder.to("tpu")(x.to("tpu"), **{k: v.to("tpu") for k, v in kind.items()}).cpu()
            keep = ~kind.get("src_key_padding_mask", torch.zeros(2, 5, dtype=torch.bool))
            torch.testing.assert_close(got[keep], want[keep], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("average", [False, True])
def test_multi_head_attention_in_inference(average, no_fallback):
    module, x = torch.nn.MultiheadAttention(16, 4, batch_first=True).eval(), draw(2, 5, 16)
    with torch.no_grad():
        want = module(x, x, x, average_attn_weights=average)
        there = x.to("tpu")
        got = module.to("tpu")(there, there, there, average_attn_weights=average)
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g.cpu(), w, rtol=1e-4, atol=1e-5)


def test_scaled_product(no_fallback):
    a, b = draw(16, 32).to(torch.float8_e4m3fn), draw(16, 32, seed=1).to(torch.float8_e4m3fn)
    scale = torch.tensor(0.5)
    for dtype in (torch.float32, torch.bfloat16):
        check(lambda a, b, s, d=dtype: torch._scaled_mm(a, b.t(), s, s, out_dtype=d), a, b, scale)
