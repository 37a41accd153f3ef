"""Runs a piece of Python in a process of its own: for what can be set only before the device
starts.

Most runs are forked from one helper process that has imported torch and torch_tpu and started
nothing, which saves the seconds that importing takes."""

import atexit
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from dataclasses import dataclass

PREAMBLE = """\
import os, sys
import torch
import torch_tpu

def raised(fn, *args):
    try:
        fn(*args)
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return "nothing was raised"
"""

# For each line of JSON: forks a child that runs the code with the given environment and files;
# writes the child's id, and its exit status once it is over.
HELPER = """\
import json, os, sys
import torch, torch_tpu
job = None
for line in sys.stdin:
    request = json.loads(line)
    child = os.fork()
    if child == 0:
        job = request
        break
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
if job is not None:
    os.setpgid(0, 0)
    for fd, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(job[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), fd)
    os.environ.clear()
    os.environ.update(job["env"])
    sys.stdin.close()
    exec(compile(job["code"], "<test>", "exec"), {"__name__": "__main__"})
"""


@dataclass
class Finished:
    returncode: int
    stdout: str
    stderr: str


_helper: subprocess.Popen | None = None


def _start_helper() -> subprocess.Popen:
    global _helper
    if _helper is None or _helper.poll() is not None:
        _helper = subprocess.Popen(
            [sys.executable, "-c", HELPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        atexit.register(_helper.stdin.close)
    return _helper


def _forked(code: str, env: dict[str, str], timeout: float) -> Finished:
    helper = _start_helper()
    with tempfile.TemporaryDirectory() as folder:
        files = {name: os.path.join(folder, name) for name in ("stdout", "stderr")}
        print(json.dumps({"code": code, "env": env} | files), file=helper.stdin, flush=True)
        child = int(helper.stdout.readline())
        alarm = threading.Timer(timeout, os.killpg, (child, signal.SIGKILL))
        alarm.start()
        status = int(helper.stdout.readline())
        alarm.cancel()
        texts = {name: pathlib.Path(path).read_text() for name, path in files.items()}
    if status == -signal.SIGKILL:
        raise TimeoutError(f"not over after {timeout} s\n{texts['stdout']}\n{texts['stderr']}")
    return Finished(status, **texts)


def run(
    code: str, timeout: float = 120, check: bool = True, preamble: str = PREAMBLE, **env: str | None
) -> Finished:
    """The finished process. `env`: variables to set, None to unset. A preamble of one's own gets a
    process that has imported nothing."""
    variables = dict(os.environ)
    for name, value in env.items():
        if value is None:
            variables.pop(name, None)
        else:
            variables[name] = value
    code = preamble + textwrap.dedent(code)
    if preamble == PREAMBLE:
        done = _forked(code, variables, timeout)
    else:
        fresh = subprocess.run(
            [sys.executable, "-c", code],
            env=variables,
            timeout=timeout,
            capture_output=True,
            text=True,
            check=False,
        )
        done = Finished(fresh.returncode, fresh.stdout, fresh.stderr)
    if check:
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done
