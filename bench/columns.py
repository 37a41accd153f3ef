"""The columns of benchmarks as processes: where each one's Python is, what it needs around it, why
it can't take part, and asking it (bench/side.py answers).
"""

import ctypes.util
import json
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TITLES = {
    "cpu": "PyTorch CPU",
    "compile": "PyTorch CPU, compiled",
    "jax": "JAX",
    "jit": "JAX, jit",
    "google": "Google",
    "google_fuse": "Google, fuse",
    "ours": "ours",
    "tcmalloc": "ours, tcmalloc",
    "fuse": "ours, fuse",
    "debug": "ours, debug",
    "graph": "ours, compiled",
    "bare": "bare PJRT execute",
}
PEERS = {"jax": "jax", "jit": "jax", "google": "google", "google_fuse": "google"}
SILENCE = 600  # seconds after which a side is given up


def language(column: str) -> str:
    """The key under which a row says what the column runs; its own name comes first."""
    if column == "bare":
        return column
    return "jax" if PEERS.get(column) == "jax" else "torch"


class Skipped(Exception):
    """Why a column takes no part."""


class Died(Exception):
    """A side's process ended, or says nothing any more."""


class Side:
    """The process of one column."""

    def __init__(self, column: str, python: str, env: dict[str, str]):
        self.column, self.python, self.env = column, python, env
        # Not a pipe: one that nobody reads fills up.
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            [python, str(ROOT / "bench/side.py"), column],
            env=env,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
        )
        try:
            self.about = self._answer()
        except Died as why:
            raise Skipped(f"does not start: {why}") from None

    def again(self) -> "Side":
        return Side(self.column, self.python, self.env)

    def _answer(self) -> dict:
        ready, _, _ = select.select([self.process.stdout], [], [], SILENCE)
        line = self.process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        self.process.kill()
        self.process.wait()
        self.errors.seek(0)
        said = self.errors.read().strip().splitlines() or ["no message"]
        raise Died(said[-1][:200] if ready else f"no answer for {SILENCE} s")

    def ask(self, do: str, **request) -> dict:
        try:
            self.process.stdin.write(json.dumps({"do": do, **request}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer says why
        return self._answer()

    def close(self) -> None:
        self.process.communicate()


def tcmalloc() -> dict[str, str]:
    """What Google's package recommends."""
    library = ctypes.util.find_library("tcmalloc_minimal")
    return {"LD_PRELOAD": library} if library else {}


def environment(column: str, peers: Path, caches: str | None) -> dict[str, str]:
    """`caches`: a folder for what the column keeps on disk; its own default if None."""
    env = dict(os.environ)
    if caches:
        env |= {"TORCH_TPU_CACHE_DIR": caches, "TORCHINDUCTOR_CACHE_DIR": caches + "/inductor"}
    if column in ("tcmalloc", "google", "google_fuse"):
        env |= tcmalloc()
    if column not in PEERS:
        return env
    env.pop("PYTHONPATH", None)  # not our torch_tpu
    env["TF_CPP_MIN_LOG_LEVEL"] = "3"
    if PEERS[column] == "google":  # what it needs to run on a CPU plugin
        env |= {
            "TPU_LIBRARY_PATH": str((peers / "plugin_shim.so").resolve()),
            "TPU_SKIP_MDS_QUERY": "1",
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
            "PYTHONWARNINGS": "ignore",
        }
    return env


def start(column: str, peers: Path, ours: dict, caches: str | None = None) -> Side:
    """`ours`: what ours says of itself; peers run on the same plugin."""
    env = environment(column, peers, caches)
    if column == "tcmalloc" and not tcmalloc():
        raise Skipped("no libtcmalloc_minimal here")
    if column not in PEERS:
        return Side(column, sys.executable, env)
    folder = peers / PEERS[column]
    if not (folder / ".installed").exists():
        raise Skipped(f"no environment {peers.name}/{folder.name}: `make bench-peers` makes it")
    if ours.get("platform") != "cpu":
        raise Skipped(f"measured on a CPU plugin only, not on {ours.get('platform')}")
    return Side(column, str(folder / "bin/python"), env | {"PEER_PLUGIN": ours["plugin"]})
