"""What the operator database's runs treat apart, and why. Nothing else is."""

# Random or uninitialised: two runs on the CPU differ too. Sizes, strides and dtypes are compared.
NO_VALUES = {
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided",
    "bernoulli", "multinomial", "normal", "rand_like", "randint", "randint_like", "randn",
    "randn_like", "uniform", "cauchy", "exponential", "geometric", "log_normal",
    "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d",
    "nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout",
    "nn.functional.rrelu", "nn.functional.multi_head_attention_forward",
    "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d",
    "svd_lowrank", "pca_lowrank",
}  # fmt: skip

# Sparse and quantised tensors are no dense operators: tpu refuses them by name.
NOT_DENSE = {
    "sparse.mm", "sparse.sampled_addmm", "to_sparse", "torch._C._sparse", "sparse",
}  # fmt: skip

# Operands that must stay on the CPU: PyTorch says so itself.
HOST_OPERANDS = {"tensor_split"}

# An index names any of several equal elements. The elements it names are compared instead.
TIES = {"topk", "kthvalue", "mode", "median", "nanmedian", "argsort", "sort"}

# The CPU's own values are wrong, in float64 too: at 5.0067 its Bessel functions are off by 2e-7 to
# 9e-7 (mpmath; ours by at most 2e-15), and its trigamma is finite at the poles (1.7e16 at -3).
# Where tpu differs from the CPU, SciPy is asked.
CPU_INEXACT = {
    "special.bessel_j0", "special.bessel_j1", "special.bessel_y0", "special.bessel_y1",
    "polygamma", "special.polygamma",
}  # fmt: skip

# LAPACK lays their results out column by column; PyTorch has no meta kernel to say so, and on tpu
# they are contiguous. Attention: PyTorch's fused kernels lay it out as the query, its formula not.
OWN_STRIDES = {"linalg.lstsq", "geqrf", "nn.functional.scaled_dot_product_attention"}

# (rtol, atol) where float32's own rounding grows: long sums, iterations. Upstream's comparison of
# two devices (test_compare_cpu) takes 1e-3 for every operator.
TOLERANCES = {
    "linalg": (1e-3, 1e-3), "matrix_exp": (1e-3, 1e-3), "nn.functional.conv": (1e-3, 1e-3),
    "cdist": (1e-3, 1e-3), "nn.functional.ctc_loss": (1e-3, 1e-3),
    "logcumsumexp": (1e-3, 1e-3), "nn.functional.layer_norm": (1e-4, 1e-4),
    "nn.functional.scaled_dot_product_attention": (1e-4, 1e-4),
    "cov": (1e-4, 1e-4), "corrcoef": (1e-4, 1e-4), "lu_solve": (1e-3, 1e-3),
    "pinverse": (1e-3, 1e-3), "svd": (1e-3, 1e-3), "cholesky": (1e-3, 1e-3),
    "special.airy_ai": (1e-5, 3e-6),  # the CPU's own error, in float64 too
    "nn.functional.hardsigmoid": (1e-7, 1e-7),  # the CPU's 1 / 6 is float32's in float64 too
    "grid_sampler_3d": (2e-5, 5e-4),  # gradients up to 200: the CPU's own error is 2e-4
    "triangular_solve": (1e-3, 1e-3), "logdet": (1e-3, 1e-3), "ormqr": (1e-3, 1e-3),
}  # fmt: skip

# What is known of entries that don't pass, for the page that tools/conformance.py writes.
CAUSES = {
    "chalf": "no ComplexHalf tensors on tpu",
    "complex": "no ComplexHalf tensors on tpu",
}


def tolerance(name):
    for prefix, pair in TOLERANCES.items():
        if name.startswith(prefix):
            return pair
    return None
