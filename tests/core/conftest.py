"""The core set: what must hold on every plugin and with every device capability forced off.
tests/torch/test_variants.py runs this folder in each such environment; by itself it runs in the
default one."""

import os
import sys

os.environ.setdefault("TORCH_TPU_FALLBACK", "error")
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "torch"))

import torch_tpu  # noqa: E402, F401  where the package is on the path but not installed
