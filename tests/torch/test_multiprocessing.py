"""Tensors through queues: by a copy in shared host memory. Forked children: see test_fork.py."""

import queue_worker
import torch
import torch.multiprocessing as mp


def test_queue_to_a_spawned_process():
    context = mp.get_context("spawn")
    to_child, from_child = context.Queue(), context.Queue()
    process = context.Process(target=queue_worker.double, args=(to_child, from_child))
    process.start()
    x = torch.arange(6.0).to("tpu").view(2, 3)
    to_child.put((x, torch.nn.Parameter(torch.ones(2).to("tpu"))))
    y, kinds = from_child.get(timeout=90)
    to_child.put("received")
    process.join(90)
    assert y.is_tpu and y.tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]
    assert kinds == ["tpu", "Parameter", "True"]
    assert process.exitcode == 0


def test_arguments_of_a_spawned_process():
    """They are pickled before the child exists and opened once it runs."""
    context = mp.get_context("spawn")
    answers = context.Queue()
    x, p = torch.arange(6.0).to("tpu"), torch.nn.Parameter(torch.ones(2).to("tpu"))
    process = context.Process(target=queue_worker.total, args=(x, p, answers))
    process.start()
    assert answers.get(timeout=90) == (17.0, "tpu", True)
    process.join(90)
    assert process.exitcode == 0
