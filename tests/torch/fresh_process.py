"""Runs a piece of Python in a process of its own: for what can be set only before the device starts."""

import os
import subprocess
import sys
import textwrap

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


def run(code: str, timeout: float = 120, check: bool = True, preamble: str = PREAMBLE, **env: str | None):
    """The finished process. `env`: variables to set, None to unset."""
    variables = dict(os.environ)
    for name, value in env.items():
        if value is None:
            variables.pop(name, None)
        else:
            variables[name] = value
    done = subprocess.run(
        [sys.executable, "-c", preamble + textwrap.dedent(code)],
        env=variables,
        timeout=timeout,
        capture_output=True,
        text=True,
        check=False,
    )
    if check:
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done
