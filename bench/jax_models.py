"""Two of the models of bench/models.py in JAX, of the same sizes: `Bench(name, device, wrap)` with
`forward()` and one training `step()`. Weights are drawn differently, so values are not compared.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

_random = np.random.default_rng(0)


def weight(*shape: int) -> jax.Array:
    return jnp.asarray(_random.standard_normal(shape).astype(np.float32) * 0.02)


def linear(inputs: int, outputs: int) -> dict:
    return {"w": weight(inputs, outputs), "b": jnp.zeros(outputs)}


def apply(layer: dict, x: jax.Array) -> jax.Array:
    return x @ layer["w"] + layer["b"]


def norm(layer: dict, x: jax.Array) -> jax.Array:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * layer["w"] + layer["b"]


def mlp(params: list, x: jax.Array) -> jax.Array:
    for layer in params[:-1]:
        x = jnp.maximum(apply(layer, x), 0)
    return apply(params[-1], x)


def attention(layer: dict, x: jax.Array, heads: int = 4) -> jax.Array:
    b, n, c = x.shape
    qkv = apply(layer["qkv"], x).reshape(b, n, 3, heads, c // heads)
    q, k, v = qkv.transpose(2, 0, 3, 1, 4)
    scores = q @ k.swapaxes(-2, -1) / (c // heads) ** 0.5
    scores = jnp.where(jnp.tri(n, dtype=bool), scores, -jnp.inf)
    y = jax.nn.softmax(scores, axis=-1) @ v
    return apply(layer["out"], y.transpose(0, 2, 1, 3).reshape(b, n, c))


def gpt(params: dict, tokens: jax.Array) -> jax.Array:
    x = params["tokens"][tokens] + params["positions"]
    for layer in params["layers"]:
        x = x + attention(layer, norm(layer["norm1"], x))
        hidden = jax.nn.gelu(apply(layer["up"], norm(layer["norm2"], x)), approximate=False)
        x = x + apply(layer["down"], hidden)
    return norm(params["norm"], x) @ params["tokens"].T


def norm_weights(width: int) -> dict:
    return {"w": jnp.ones(width), "b": jnp.zeros(width)}


def gpt_weights(vocabulary: int = 512, width: int = 256, depth: int = 4, length: int = 64) -> dict:
    layer = lambda: {  # noqa: E731
        "qkv": linear(width, 3 * width),
        "out": linear(width, width),
        "up": linear(width, 4 * width),
        "down": linear(4 * width, width),
        "norm1": norm_weights(width),
        "norm2": norm_weights(width),
    }
    return {
        "tokens": weight(vocabulary, width),
        "positions": weight(length, width),
        "layers": [layer() for _ in range(depth)],
        "norm": norm_weights(width),
    }


def cross_entropy(logits: jax.Array, targets: jax.Array) -> jax.Array:
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], axis=-1)
    return -chosen.mean()


def adamw(params: dict, grads: dict, state: tuple, lr: float = 1e-3) -> tuple:
    """Loshchilov and Hutter, arXiv:1711.05101, with PyTorch's defaults."""
    count, first, second = state
    count = count + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, grads)

    def update(p: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
        root = jnp.sqrt(v / (1 - 0.999**count)) + 1e-8
        return p * (1 - lr * 0.01) - lr * m / (1 - 0.9**count) / root

    return jax.tree.map(update, params, first, second), (count, first, second)


class Bench:
    """A model with its data: `forward()` or one training `step()`."""

    def __init__(self, name: str, device: str, wrap: Callable, training: bool = True):
        integers = lambda high, *shape: jnp.asarray(_random.integers(0, high, shape))  # noqa: E731
        if name == "mlp":
            self.params = [linear(256, 512), linear(512, 512), linear(512, 10)]
            model, self.inputs, self.targets = mlp, weight(64, 256), integers(10, 64)
        else:
            self.params = gpt_weights()
            model, self.inputs, self.targets = gpt, integers(512, 4, 64), integers(512, 4, 64)
        zeros = jax.tree.map(jnp.zeros_like, self.params)
        self.state = (jnp.float32(0), zeros, zeros)

        def step(params: dict, state: tuple, inputs: jax.Array, targets: jax.Array) -> tuple:
            def loss_of(params: dict) -> jax.Array:
                return cross_entropy(model(params, inputs), targets)

            loss, grads = jax.value_and_grad(loss_of)(params)
            return loss, *adamw(params, grads, state)

        self._forward, self._step = wrap(model), wrap(step)

    def forward(self) -> jax.Array:
        return self._forward(self.params, self.inputs)

    def step(self) -> jax.Array:
        loss, self.params, self.state = self._step(
            self.params, self.state, self.inputs, self.targets
        )
        return loss
