"""Short names for small tensors."""

import torch

INF, NAN = float("inf"), float("nan")


def _maker(dtype):
    def make(*values):
        return torch.tensor(values[0] if len(values) == 1 else values, dtype=dtype)

    return make


f32, f64, f16, bf16 = map(_maker, (torch.float32, torch.float64, torch.float16, torch.bfloat16))
i8, i16, i32, i64 = map(_maker, (torch.int8, torch.int16, torch.int32, torch.int64))
u8, b8, c64, c128 = map(_maker, (torch.uint8, torch.bool, torch.complex64, torch.complex128))

EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, INF, -INF, NAN, 3.25, -0.75, 10.0)


def edges(dtype=torch.float32):
    return torch.tensor(EDGES, dtype=dtype)
