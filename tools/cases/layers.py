"""Layers: convolution, norms, attention, losses, cells, optimizers, resampling."""

import math

import torch
import torch.nn.functional as F

from .recorder import aten, family, mod
from .values import b8, f32, i32, i64

F32, F16, BF16, I64 = torch.float32, torch.float16, torch.bfloat16, torch.int64


def convolve(
    c,
    name,
    x,
    w,
    bias=None,
    stride=(1,),
    pad=(0,),
    dilation=(1,),
    transposed=False,
    out_pad=(0,),
    groups=1,
    **kw,
):
    n = x.dim() - 2
    each = [list(v) * (n if len(v) == 1 else 1) for v in (stride, pad, dilation)]
    c(
        name,
        aten.convolution.default,
        x,
        w,
        bias,
        *each,
        transposed,
        list(out_pad) * n,
        groups,
        **kw,
    )


@family
def conv(c):
    x, w = mod(F32, (1, 2, 4, 4), 5, 32, -9), mod(F32, (3, 2, 3, 3), 7, 54, -20)
    convolve(c, "conv2d", x, w, f32(1, -1, 0.5), pad=(1,))
    convolve(
        c, "conv2d_stride_dilation", x, w[:, :, :2, :2], stride=(2,), pad=(1, 0), dilation=(2, 1)
    )
    convolve(c, "conv2d_groups", x, mod(F32, (4, 1, 2, 2), 3, 16), groups=2)
    convolve(c, "conv2d_channels_last", x.to(memory_format=torch.channels_last), w)
    convolve(c, "conv1d", mod(F32, (2, 1, 5), 1, 10), mod(F32, (2, 1, 3), 1, 6), pad=(2,))
    convolve(c, "conv3d", mod(F32, (1, 1, 2, 3, 3), 1, 18), mod(F32, (1, 1, 2, 2, 2), 1, 8))
    convolve(
        c,
        "conv_transposed",
        x,
        mod(F32, (2, 2, 3, 3), 5, 36),
        stride=(2,),
        pad=(1,),
        transposed=True,
        out_pad=(1,),
    )
    convolve(c, "conv_empty_batch", x[:0], w)
    convolve(c, "conv_half", mod(F16, (1, 2, 3, 3), 1, 9), mod(F16, (1, 2, 2, 2), 1, 8, -3))
    conv_gradients(c, x, w)


def conv_gradients(c, x, w):
    y = mod(F32, (1, 3, 2, 2), 5, 12)
    c(
        "conv2d_backward",
        aten.convolution_backward.default,
        y,
        x,
        w,
        [3],
        [1, 1],
        [0, 0],
        [1, 1],
        False,
        [0, 0],
        1,
        [True, True, True],
    )
    c(
        "conv2d_backward_strided",
        aten.convolution_backward.default,
        y,
        x,
        w[:, :, :2, :2],
        [3],
        [2, 2],
        [0, 0],
        [1, 1],
        False,
        [0, 0],
        1,
        [True, True, False],
    )
    c(
        "conv_overrideable",
        aten.convolution_overrideable.default,
        x,
        w,
        None,
        [1, 1],
        [0, 0],
        [1, 1],
        False,
        [0, 0],
        1,
        golden=lambda input, weight, **kw: F.conv2d(input, weight),
    )


@family
def norm(c):
    x = mod(F32, (2, 3, 4), 7, 24, -8)
    w, b = f32(1, 2, 0.5), f32(0, 1, -1)
    tight = dict(ulp=8, atol=1e-6)
    c(
        "layer_norm",
        aten.native_layer_norm.default,
        x,
        [4],
        f32(1, 2, 3, 4),
        f32(0, 0, 1, 1),
        1e-5,
        **tight,
    )
    c(
        "layer_norm_half",
        aten.native_layer_norm.default,
        x.half(),
        [4],
        None,
        None,
        1e-5,
        ulp=2,
        atol=1e-3,
        any_of=(1, 2),
    )
    c("group_norm", aten.native_group_norm.default, x, w, b, 2, 3, 4, 3, 1e-5, **tight)
    batch_norm(c, x, w, b)
    norm_gradients(c, x, w, b)
    c("renorm", aten.renorm.default, x, 2, 0, 5, ulp=8)
    c("weight_norm", aten._weight_norm_interface.default, x[0], f32([1], [2], [3]), 0, **tight)

    def rms(input, normalized_shape, weight, eps):
        rstd = torch.rsqrt((input * input).mean(-1, True) + eps)
        return input * rstd * weight, rstd

    c("rms_norm", aten._fused_rms_norm.default, x, [4], f32(1, 2, 3, 4), 1e-5, golden=rms, **tight)


def batch_norm(c, x, w, b):
    tight = dict(ulp=8, atol=1e-6)
    mean, var = f32(0.5, 1, 2), f32(1, 4, 9)
    c(
        "batch_norm_training",
        aten.native_batch_norm.default,
        x,
        w,
        b,
        mean.clone(),
        var.clone(),
        True,
        0.1,
        1e-5,
        **tight,
    )
    c(
        "batch_norm_evaluation",
        aten.native_batch_norm.default,
        x,
        w,
        b,
        mean.clone(),
        var.clone(),
        False,
        0.1,
        1e-5,
        any_of=(1, 2),
        **tight,
    )
    c(
        "batch_norm_legit",
        aten._native_batch_norm_legit.default,
        x,
        None,
        None,
        mean.clone(),
        var.clone(),
        True,
        0.5,
        1e-3,
        **tight,
    )


def norm_gradients(c, x, w, b):
    _, m, r = aten.native_layer_norm.default(x, [4], None, None, 1e-5)
    g = mod(F32, (2, 3, 4), 5, 24, -9)
    c(
        "layer_norm_backward",
        aten.native_layer_norm_backward.default,
        g,
        x,
        [4],
        m,
        r,
        f32(1, 2, 3, 4),
        f32(0, 0, 1, 1),
        [True, True, True],
        rtol=1e-5,
        atol=1e-4,
    )
    _, m, r = aten.native_batch_norm.default(x, w, b, None, None, True, 0.1, 1e-5)
    c(
        "batch_norm_backward",
        aten.native_batch_norm_backward.default,
        g,
        x,
        w,
        None,
        None,
        m,
        r,
        True,
        1e-5,
        [True, True, True],
        rtol=1e-5,
        atol=1e-4,
    )


def attend(query, key, value, attn_bias=None, is_causal=False, **kw):
    s = query.double() @ key.double().mT / math.sqrt(query.shape[-1])
    if attn_bias is not None:
        s = s + attn_bias
    if is_causal:
        keep = torch.ones(s.shape[-2:], dtype=torch.bool).tril()
        s = s.masked_fill(~keep, -math.inf)
    out = (s.softmax(-1) @ value.double()).to(query.dtype)
    zero = torch.zeros((), dtype=I64)
    return out, s.logsumexp(-1).float(), None, None, 3, 3, zero, zero, None


@family
def attention(c):
    q, k, v = (mod(F32, (1, 2, 3, 4), m, 24, -12, 0.125) for m in (5, 7, 11))
    op, other = aten._scaled_dot_product_fused_attention_overrideable.default, (6, 7)
    tight = dict(rtol=2e-6, atol=1e-6)
    c("plain", op, q, k, v, golden=attend, any_of=other, **tight)
    c("causal", op, q, k, v, None, 0.0, True, golden=attend, any_of=other, **tight)
    bias = mod(F32, (1, 1, 3, 3), 1, 9, -4)
    c("bias", op, q, k, v, bias, golden=attend, any_of=other, **tight)
    c(
        "bfloat16",
        op,
        q.bfloat16(),
        k.bfloat16(),
        v.bfloat16(),
        golden=attend,
        any_of=other,
        rtol=8e-3,
        atol=1e-3,
    )
    x = f32([1, 2, 3], [4, 5, 6])
    mask = b8([False, True, False], [True, True, True])
    c("masked_softmax", aten._masked_softmax.default, x, mask, 1, 2, ulp=4)


@family
def loss(c):
    x, t = f32(0.5, -1, 2, 0), f32(1, 0, 2.5, -3)
    for reduction, name in enumerate(("none", "mean", "sum")):
        c(f"mse_{name}", aten.mse_loss.default, x, t, reduction, ulp=1)
        c(f"smooth_l1_{name}", aten.smooth_l1_loss.default, x, t, reduction, 0.75, ulp=1)
    c("huber", aten.huber_loss.default, x, t, 1, 1.5, ulp=1)
    c("mse_backward", aten.mse_loss_backward.default, f32(2), x, t, 1, ulp=1)
    c("huber_backward", aten.huber_loss_backward.default, f32(2), x, t, 1, 1.5, ulp=1)
    p, y = f32(0.0, 0.25, 1.0, 0.5), f32(0, 1, 1, 0.5)
    c("bce", aten.binary_cross_entropy.default, p, y, None, 0, ulp=4, any_zero=True)
    c(
        "bce_backward",
        aten.binary_cross_entropy_backward.default,
        f32(1, 1, 1, 1),
        p,
        y,
        None,
        0,
        ulp=4,
        any_zero=True,
    )
    c(
        "bce_logits",
        aten.binary_cross_entropy_with_logits.default,
        x * 30,
        y,
        None,
        f32(2),
        1,
        ulp=4,
    )
    c("mse_empty_mean", aten.mse_loss.default, f32([]), f32([]), 1)


@family
def class_loss(c):
    x = F.log_softmax(mod(F32, (3, 4), 5, 12), 1)
    t, w = i64(2, 0, 3), f32(1, 2, 0.5, 3)
    for reduction, name in enumerate(("none", "mean", "sum")):
        c(f"nll_{name}", aten.nll_loss_forward.default, x, t, w, reduction, -100, ulp=4)
    c("nll_ignored", aten.nll_loss_forward.default, x, i64(2, -100, 3), None, 1, -100, ulp=4)
    c("nll_all_ignored", aten.nll_loss_forward.default, x, i64(1, 1, 1), None, 1, 1)
    c(
        "nll_out_of_range",
        aten.nll_loss_forward.default,
        x,
        i64(4, 0, 0),
        None,
        1,
        -100,
        error=("out of range", "index 4"),
    )
    c(
        "nll_backward",
        aten.nll_loss_backward.default,
        f32(2),
        x,
        t,
        w,
        1,
        -100,
        f32(4.5),
        ulp=1,
        any_zero=True,
    )
    image = F.log_softmax(mod(F32, (1, 2, 2, 2), 3, 8), 1)
    c(
        "nll2d",
        aten.nll_loss2d_forward.default,
        image,
        i64([[0, 1], [1, 1]])[None],
        None,
        1,
        -100,
        ulp=4,
    )
    c("multi_margin", aten.multi_margin_loss.default, x, t, 1, 1, None, 1, ulp=4)
    c(
        "multilabel_margin",
        aten.multilabel_margin_loss_forward.default,
        x,
        i64([2, 0, -1, 1], [1, -1, 0, 0], [3, 2, 1, 0]),
        1,
        ulp=4,
    )
    ctc(c)


def ctc(c):
    logits = F.log_softmax(mod(F32, (4, 2, 3), 5, 24), 2)
    c(
        "ctc",
        aten._ctc_loss.default,
        logits,
        i64([1, 2], [2, 2]),
        [4, 4],
        [2, 1],
        any_of=(1,),
        rtol=1e-5,
    )


@family
def rnn(c):
    gates_x, gates_h = mod(F32, (2, 8), 5, 16, -8, 0.25), mod(F32, (2, 8), 3, 16, -8, 0.125)
    cx = mod(F32, (2, 2), 1, 4, -1, 0.5)

    def lstm(input_gates, hidden_gates, cx, input_bias=None, hidden_bias=None):
        i, f, g, o = (input_gates + hidden_gates).double().chunk(4, 1)
        cy = f.sigmoid() * cx + i.sigmoid() * g.tanh()
        hy = o.sigmoid() * cy.tanh()
        work = torch.cat([i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()], 1)
        return hy.float(), cy.float(), work.float()

    def gru(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
        ir, iz, n = input_gates.double().chunk(3, 1)
        hr, hz, hn = hidden_gates.double().chunk(3, 1)
        r, z = (ir + hr).sigmoid(), (iz + hz).sigmoid()
        n = (n + r * hn).tanh()
        return (n + z * (hx - n)).float(), torch.cat([r, z, n, hx, hn], 1).float()

    c("lstm", aten._thnn_fused_lstm_cell.default, gates_x, gates_h, cx, golden=lstm, ulp=16)
    c(
        "gru",
        aten._thnn_fused_gru_cell.default,
        gates_x[:, :6],
        gates_h[:, 2:],
        cx,
        golden=gru,
        ulp=16,
    )


@family
def optim(c):
    def lists():
        p, g, m, v = (mod(F32, (4,), k, 4, -1, 0.5) for k in (1, 3, 2, 5))
        return [p], [g], [m], [v.square()], [f32(2)]

    tight = dict(ulp=8, atol=1e-7)
    for name in ("adam", "adamw"):
        op = getattr(aten, f"_fused_{name}_").default
        p, g, m, v, s = lists()
        kw = dict(lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.01, eps=1e-8, maximize=False)
        c(name, op, p, g, m, v, [], s, amsgrad=False, **kw, **tight)
        p, g, m, v, s = lists()
        c(f"{name}_amsgrad", op, p, g, m, v, [f32(9, 0, 0, 0)], s, amsgrad=True, **kw, **tight)
    p, g, m, _, _ = lists()
    kw = dict(weight_decay=0.1, lr=0.5, maximize=True, nesterov=True, is_first_step=False)
    c("sgd", aten._fused_sgd_.default, p, g, m, momentum=0.9, dampening=0.0, **kw, **tight)
    p, g, m, _, _ = lists()
    c(
        "sgd_first_step",
        aten._fused_sgd_.default,
        p,
        g,
        m,
        momentum=0.5,
        dampening=0.0,
        weight_decay=0.0,
        lr=0.5,
        maximize=False,
        nesterov=False,
        is_first_step=True,
        **tight,
    )
    p, g, m, v, s = lists()
    c(
        "adagrad",
        aten._fused_adagrad_.default,
        p,
        g,
        v,
        s,
        lr=0.1,
        lr_decay=0.5,
        weight_decay=0.0,
        eps=1e-10,
        maximize=False,
        **tight,
    )
    scaler(c)


def scaler(c):
    unscale = aten._amp_foreach_non_finite_check_and_unscale_.default
    c("unscale", unscale, [f32(2, 4)], f32([0.0]), f32([0.5]))
    c("unscale_finds_inf", unscale, [f32(2, math.inf)], f32([0.0]), f32([0.5]))
    c(
        "update_scale_grows",
        aten._amp_update_scale_.default,
        f32([4.0]),
        i32([1]),
        f32([0.0]),
        2.0,
        0.5,
        2,
    )
    c(
        "update_scale_backs_off",
        aten._amp_update_scale_.default,
        f32([4.0]),
        i32([1]),
        f32([1.0]),
        2.0,
        0.5,
        2,
    )
