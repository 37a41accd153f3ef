"""Tasks for worker processes, for tools whose work may die or hang: one task (a dictionary) a line
in, one result a line out. A worker that dies or hangs costs its own task only.

Not a library of the project: the tools share it.
"""

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterator


def tasks() -> Iterator[tuple[dict, Callable[[dict], None]]]:
    """In a worker: each task with the function that answers it. What is printed is no answer."""
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        yield json.loads(line), lambda result: print(json.dumps(result), file=results, flush=True)


class Worker:
    """One process; a fresh one after a loss, or after `lifetime` tasks."""

    def __init__(self, command: list[str], lifetime: int, env: dict[str, str]) -> None:
        self._command, self._lifetime, self._env = command, lifetime, env
        self.task: dict | None = None
        self._start()

    def _start(self) -> None:
        self.process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, env=os.environ | self._env,
        )  # fmt: skip
        self._given = 0

    def give(self, task: dict) -> None:
        if self._given >= self._lifetime:
            self.restart()
        self.task, self.since = task, time.monotonic()
        self._given += 1
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()

    def restart(self) -> None:
        self.stop()
        self._start()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def run(
    todo: list[dict],
    command: list[str],
    finish: Callable[[dict, dict | None, str], None],
    *,
    jobs: int,
    seconds: float,
    lifetime: int = 400,
    env: dict[str, str] | None = None,
) -> None:
    """Runs every task; `finish(task, result, why)` for each, with no result and a reason where the
    worker died or took longer than `seconds`."""
    todo = list(reversed(todo))
    workers = [Worker(command, lifetime, env or {}) for _ in range(min(jobs, len(todo)))]

    def end(worker: Worker, result: dict | None, why: str = "") -> None:
        finish(worker.task, result, why)
        worker.task = None
        if result is None:
            worker.restart()

    while todo or any(w.task for w in workers):
        for w in workers:
            if w.task is None and todo:
                w.give(todo.pop())
        with selectors.DefaultSelector() as selector:
            for w in workers:
                if w.task:
                    selector.register(w.process.stdout, selectors.EVENT_READ, w)
            ready = selector.select(timeout=2)
        for at, _ in ready:
            line = at.data.process.stdout.readline()
            if line:
                end(at.data, json.loads(line))
            else:
                end(at.data, None, f"the process died: status {at.data.process.wait()}")
        for w in workers:
            if w.task and time.monotonic() - w.since > seconds:
                end(w, None, f"no answer in {seconds:.0f} s")
    for w in workers:
        w.stop()
