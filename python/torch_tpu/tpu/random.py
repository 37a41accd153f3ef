"""Random numbers of torch.tpu. A generator's state is 16 bytes, seed and offset, on the host."""

from collections.abc import Iterable
from typing import Any

import torch

from torch_tpu import _C
from torch_tpu.tpu._device import _index


def _generator(device: Any) -> torch.Generator:
    return _C.default_generator(_index(device))


def _count() -> int:
    # One generator exists even with no device, so that seeding at the top of a script never fails.
    return max(_C.device_count(), 1)


def get_rng_state(device: Any = "tpu") -> torch.Tensor:
    """The state of a device's generator: uint8[16], on the CPU. Waits for nothing."""
    return _generator(device).get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all devices' generators."""
    return [get_rng_state(i) for i in range(_C.device_count())]


def set_rng_state(new_state: torch.Tensor, device: Any = "tpu") -> None:
    """Sets the state that get_rng_state gave."""
    _generator(device).set_state(new_state)


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Sets the states of all devices' generators."""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator."""
    _generator(None).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all devices."""
    for i in range(_count()):
        _generator(i).manual_seed(int(seed))


def seed() -> None:
    """Seeds the current device's generator with a random number."""
    _generator(None).seed()


def seed_all() -> None:
    """Seeds all devices' generators with one random number."""
    value = _generator(0).seed()
    for i in range(1, _count()):
        _generator(i).manual_seed(value)


def initial_seed() -> int:
    """The seed of the current device's generator."""
    return _generator(None).initial_seed()
