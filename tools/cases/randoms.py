"""Random numbers: the streams are torch_tpu's own, so the goldens are an independent
Threefry-2x32-20 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
"""

import numpy as np
import torch

from .recorder import aten, family, mod
from .values import NAN, f32, i64

MASK = 0xFFFFFFFF
SEED = (0x123456789ABCDEF, 41)


def words(n: int, draw: int = 0, seed=SEED) -> tuple[list[int], list[int]]:
    """Two 32-bit words for each of n elements: Threefry of offset + i under the seed."""
    low, high = [], []
    keys = [seed[0] & MASK ^ (draw * 0x9E3779B9 & MASK), seed[0] >> 32]
    keys.append(keys[0] ^ keys[1] ^ 0x1BD11BDA)
    for i in range(n):
        counter = seed[1] + i
        x, y = (counter & MASK) + keys[0] & MASK, (counter >> 32) + keys[1] & MASK
        for block in range(5):
            for r in ((13, 15, 26, 6), (17, 29, 16, 24))[block % 2]:
                x = x + y & MASK
                y = (y << r | y >> 32 - r) & MASK ^ x
            x = x + keys[(block + 1) % 3] & MASK
            y = y + keys[(block + 2) % 3] + block + 1 & MASK
        low.append(x)
        high.append(y)
    return low, high


def unit32(n, draw=0) -> torch.Tensor:
    return torch.tensor([w >> 8 for w in words(n, draw)[0]], dtype=torch.float64) * 2.0**-24


def whole64(n) -> list[int]:
    return [h << 32 | lo for lo, h in zip(*words(n), strict=True)]


def fill(values):
    """A golden that writes `values` of the target's element count."""

    def golden(self, **kw):
        new = values(self.numel(), **kw)
        return self.copy_(torch.as_tensor(new).reshape(self.shape).to(self.dtype))

    return golden


def normals(n):
    low, high = words(n)
    u = np.minimum((np.array(low, dtype=np.float64) + 0.5) * 2.0**-32, 1 - 2.0**-24)
    turn = np.array([h >> 8 for h in high], dtype=np.float64) * 2.0**-24
    return torch.from_numpy(np.sqrt(-2 * np.log(u)) * np.cos((turn - 0.5) * 2 * np.pi))


def signed(v: int) -> int:
    return v - (1 << 64) if v >> 63 else v


@family
def random(c):
    def x(dtype=torch.float32):
        return torch.zeros(2, 3, dtype=dtype)

    uniform(c)
    c(
        "normal",
        aten.normal_.default,
        x(),
        1.0,
        2.0,
        seed=SEED,
        rtol=1e-5,
        atol=1e-6,
        golden=fill(lambda n, **kw: normals(n) * 2 + 1),
    )
    c(
        "bernoulli",
        aten.bernoulli_.float,
        x(),
        0.4,
        seed=SEED,
        golden=fill(lambda n, p: unit32(n) < np.float32(p)),
    )
    c(
        "bernoulli_surely",
        aten.bernoulli.default,
        f32(0, 1, 0, 1),
        seed=SEED,
        golden=lambda self: self,
    )
    c(
        "exponential",
        aten.exponential_.default,
        x(),
        2.0,
        seed=SEED,
        rtol=1e-5,
        golden=fill(lambda n, lambd: -np.log((np.array(words(n)[0]) + 0.5) * 2.0**-32) / lambd),
    )
    c(
        "normal_refuses_negative",
        aten.normal_.default,
        x(),
        0.0,
        -1.0,
        seed=SEED,
        error=("invalid argument", "std"),
    )
    c(
        "normal_of_zero_deviation",
        aten.normal.Tensor_Tensor,
        f32(1, -2, 3),
        f32(0, 0, 0),
        seed=SEED,
        golden=lambda mean, std: mean,
    )
    whole_numbers(c)


def uniform(c):
    def x():
        return torch.zeros(2, 3)

    c(
        "uniform",
        aten.uniform_.default,
        x(),
        0.0,
        1.0,
        seed=SEED,
        golden=fill(lambda n, **kw: unit32(n)),
    )
    c(
        "uniform_range",
        aten.uniform_.default,
        x(),
        -2.0,
        3.0,
        seed=SEED,
        ulp=1,
        golden=fill(lambda n, **kw: unit32(n) * 5 - 2),
    )
    c(
        "uniform_counter_carries",
        aten.uniform_.default,
        x(),
        seed=(7, 0xFFFFFFFE),
        golden=fill(lambda n: [(w >> 8) * 2.0**-24 for w in words(n, seed=(7, 0xFFFFFFFE))[0]]),
    )
    c(
        "uniform_into_view",
        aten.uniform_.default,
        torch.zeros(4, 4)[1:3, :3],
        0.0,
        1.0,
        seed=SEED,
        golden=fill(lambda n, **kw: unit32(n)),
    )


def whole_numbers(c):
    x = torch.zeros(2, 3, dtype=torch.int64)
    c(
        "random_int64",
        aten.random_.default,
        x,
        seed=SEED,
        golden=fill(lambda n: [w >> 1 for w in whole64(n)]),
    )
    c(
        "random_range",
        getattr(aten.random_, "from"),
        x,
        -5,
        100,
        seed=SEED,
        golden=lambda self, to, **kw: fill(lambda n: [(w * 105 >> 64) - 5 for w in whole64(n)])(
            self
        ),
    )
    c(
        "random_uint8",
        aten.random_.default,
        x.to(torch.uint8),
        seed=SEED,
        golden=fill(lambda n: [w * 256 >> 64 for w in whole64(n)]),
    )


@family
def random_loops(c):
    c("poisson_of_zero", aten.poisson.default, f32(0, 0), seed=SEED, golden=lambda self: self)
    c(
        "binomial_surely",
        aten.binomial.default,
        f32(5, 7, 0),
        f32(0, 1, 0.5),
        seed=SEED,
        golden=lambda count, prob: f32(0, 7, 0),
    )
    c(
        "multinomial_only_choice",
        aten.multinomial.default,
        f32([0, 3, 0], [0, 0, 1]),
        2,
        True,
        seed=SEED,
        golden=lambda self, num_samples, replacement: i64([1, 1], [2, 2]),
    )
    c(
        "dirichlet_of_one",
        aten._sample_dirichlet.default,
        f32([0.5], [3]),
        seed=SEED,
        golden=lambda self: self * 0 + 1,
    )


@family
def dropout(c):
    x, op = mod(torch.float32, (2, 4), 1, 8, 1), aten.native_dropout.default

    def half(input, p, train):
        mask = (unit32(8) < 1 - p).view(2, 4)
        return torch.where(mask, input / (1 - p), 0), mask

    c("half", op, x, 0.5, True, seed=SEED, golden=half)
    c("quarter_of_nan", op, x * NAN, 0.25, True, seed=SEED, any_of=(0,), golden=half)
    c(
        "evaluation",
        op,
        x,
        0.5,
        False,
        seed=SEED,
        golden=lambda input, **kw: (input, input == input),
    )
    c(
        "none_kept",
        op,
        x,
        1.0,
        True,
        seed=SEED,
        golden=lambda input, **kw: (input * 0, input != input),
    )
    c("backward", aten.native_dropout_backward.default, x, x > 3, 2.0)
