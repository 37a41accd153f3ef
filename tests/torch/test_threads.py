"""Several threads: on tensors of their own, and writing one storage."""

import threading

import torch


def run(*works) -> list[BaseException]:
    errors = []

    def guard(work):
        try:
            work()
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=guard, args=(w,)) for w in works]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
        assert not t.is_alive()
    return errors


def test_two_threads_write_halves_of_one_storage():
    x = torch.zeros(2, 64).to("tpu")

    def add_to(row):
        for _ in range(100):
            x[row].add_(1)

    assert run(lambda: add_to(0), lambda: add_to(1)) == []
    assert x.cpu().unique().tolist() == [100.0], "no write is lost"


def test_two_threads_write_the_same_elements():
    x = torch.zeros(8).to("tpu")

    def work():
        for _ in range(100):
            x.add_(1)

    assert run(work, work) == []
    assert x.tolist() == [200.0] * 8


def test_threads_compile_and_read_at_once():
    base = torch.arange(200.0).to("tpu")

    def work(start):
        for i in range(6):
            n = 20 + start + i
            assert torch.equal((base[:n] * 2 + 1).cpu(), torch.arange(float(n)) * 2 + 1)

    assert run(*[lambda s=s: work(s) for s in (0, 6, 0, 6)]) == []


def test_backward_in_threads():
    def work():
        w = torch.ones(4).to("tpu").requires_grad_()
        (w * w).backward(torch.ones(4).to("tpu"))
        assert w.grad.tolist() == [2.0] * 4

    assert run(work, work, work) == []


def test_a_strict_thread_reads_what_a_fuse_thread_records():
    x = torch.zeros(16).to("tpu")

    def record():
        with torch.tpu.eager_mode("fuse"):
            for i in range(300):
                x.add_(1)
                if i % 50 == 49:
                    x.sum().item()

    def read():
        last = 0.0
        for _ in range(300):
            now = (x * 2).sum().item()
            assert now >= last and now % 32 == 0
            last = now

    assert run(record, read, read) == []
    assert x.tolist() == [300.0] * 16
