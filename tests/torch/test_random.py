"""Generators: state, seeding, forking. What the random operators draw is tested with them."""

import pytest
import torch


@pytest.fixture(autouse=True)
def same_state_afterwards():
    state = torch.tpu.get_rng_state()
    yield
    torch.tpu.set_rng_state(state)


def test_state_is_sixteen_bytes(counters):
    torch.tpu.manual_seed(5)
    state = torch.tpu.get_rng_state()
    assert state.dtype == torch.uint8 and state.numel() == 16 and state.device.type == "cpu"
    assert state.view(torch.int64).tolist() == [5, 0]
    assert counters.host_reads == counters.launches == 0
    with pytest.raises(RuntimeError, match="16 bytes"):
        torch.tpu.set_rng_state(torch.zeros(8, dtype=torch.uint8))


def test_seeding():
    torch.manual_seed(11)
    assert torch.tpu.initial_seed() == 11
    torch.tpu.manual_seed_all(12)
    assert torch.tpu.initial_seed() == 12 == torch.tpu.default_generators[0].initial_seed()
    torch.tpu.seed()
    first = torch.tpu.initial_seed()
    torch.tpu.seed_all()
    assert torch.tpu.initial_seed() != first
    torch.manual_seed(-1)
    torch.seed()


def test_fork_rng():
    torch.manual_seed(3)
    before = torch.tpu.get_rng_state()
    with torch.random.fork_rng():
        torch.tpu.manual_seed(99)
    with torch.random.fork_rng(device_type="tpu", devices=[0]):
        torch.tpu.manual_seed(98)
    assert torch.equal(torch.tpu.get_rng_state(), before)


def test_generator_objects():
    g = torch.Generator(device="tpu")
    assert g.device == torch.device("tpu:0")
    g.manual_seed(4)
    assert g.initial_seed() == 4
    state = g.get_state()
    h = torch.Generator(device="tpu")
    h.set_state(state)
    assert torch.equal(h.get_state(), state)
    assert torch.equal(g.clone_state().get_state(), state)
    torch.tpu._set_rng_state_offset(8)
    assert torch.tpu._get_rng_state_offset() == 8
    assert torch.tpu._get_generator(torch.device("tpu")) is torch.tpu.default_generators[0]


def test_a_generator_of_another_device_is_refused():
    with pytest.raises(RuntimeError, match=r"(?i)generator"):
        torch.rand(2, device="tpu", generator=torch.Generator())


def test_same_stream_from_the_same_state():
    torch.manual_seed(0)
    a = torch.rand(7, device="tpu")
    state = torch.tpu.get_rng_state()
    b, c = torch.rand(7, device="tpu"), torch.randn(3, 2, device="tpu")
    assert not torch.equal(a, b)
    torch.tpu.set_rng_state(state)
    assert torch.equal(torch.rand(7, device="tpu"), b)
    assert torch.equal(torch.randn(3, 2, device="tpu"), c)
    g = torch.Generator(device="tpu").manual_seed(0)
    assert torch.equal(torch.rand(7, device="tpu", generator=g), a)
