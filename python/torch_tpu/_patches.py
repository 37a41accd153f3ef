"""What has no registration point in PyTorch 2.13 and is replaced here: each with its reason and the
version that ends it. No replacement changes what other devices do."""

import functools
import sys
import threading
import types
from typing import Any

import torch

from torch_tpu import _C


def _print_from_host() -> None:
    """Printing would compile a dozen programs: only a fixed list of devices is copied to the host
    first. Ends with a version whose `_tensor_str` asks the backend."""
    original = torch._tensor_str._tensor_str

    @functools.wraps(original)
    def _tensor_str(self: torch.Tensor, indent: int) -> str:
        if self.device.type == "tpu" and type(self) in (torch.Tensor, torch.nn.Parameter):
            self = self.detach().cpu()
        return original(self, indent)

    torch._tensor_str._tensor_str = _tensor_str


def _dlpack() -> None:
    """`__dlpack_device__` compares with the literal "privateuse1", which every renamed backend
    fails (pytorch/pytorch#195815). A capsule for the CPU is made from a host copy."""
    device_of, export = torch.Tensor.__dlpack_device__, torch.Tensor.__dlpack__
    from torch.utils.dlpack import DLDeviceType

    @functools.wraps(device_of)
    def __dlpack_device__(self: torch.Tensor) -> tuple[Any, int]:
        if type(self) in (torch.Tensor, torch.nn.Parameter) and self.device.type == "tpu":
            return (DLDeviceType.kDLExtDev, self.device.index)
        return device_of(self)

    @functools.wraps(export)
    def __dlpack__(self: torch.Tensor, **kwargs: Any) -> Any:
        if type(self) not in (torch.Tensor, torch.nn.Parameter) or self.device.type != "tpu":
            return export(self, **kwargs)
        target = kwargs.get("dl_device")
        if target is not None and target[0] == DLDeviceType.kDLCPU:
            if kwargs.get("copy") is False:
                raise BufferError("a tpu tensor can't be given to the CPU without a copy")
            if self.requires_grad:
                raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
            return export(self.cpu(), **{**kwargs, "copy": None, "stream": None})
        return export(self, **kwargs)

    torch.Tensor.__dlpack_device__ = __dlpack_device__
    torch.Tensor.__dlpack__ = __dlpack__


def _send_by_host() -> None:
    """There is no way to share device memory between processes (pytorch/pytorch#192099): a tensor
    that
    goes through a queue or pipe is copied to shared host memory, and up again in the receiver."""
    from multiprocessing.context import get_spawning_popen
    from multiprocessing.reduction import ForkingPickler

    from torch.multiprocessing import reductions

    original = reductions.reduce_tensor

    @functools.wraps(original)
    def reduce_tensor(tensor: torch.Tensor) -> tuple:
        if tensor.device.type != "tpu" or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            return original(tensor)
        if tensor.requires_grad and not tensor.is_leaf:
            raise RuntimeError(
                "a non-leaf tensor that requires grad can't be sent to another process; "
                "detach() it first"
            )
        parameter = isinstance(tensor, torch.nn.Parameter)
        host = tensor.detach().cpu()
        spawning = get_spawning_popen()
        if spawning is not None:  # an argument of the process: its descriptor is passed on later
            vars(spawning).setdefault("_tpu_arguments", []).append(host)
        return _receive, (
            host,
            str(tensor.device),
            tensor.requires_grad,
            parameter,
        )

    reductions.reduce_tensor = reduce_tensor
    for kind in (torch.Tensor, torch.nn.Parameter):
        ForkingPickler.register(kind, reduce_tensor)


def _not_shared() -> None:
    """Storages of every device but the CPU count as shared, as CUDA's are. tpu memory belongs to
    one process: what another one gets is a copy. Ends with a version that asks the backend."""
    original = torch.UntypedStorage.is_shared

    @functools.wraps(original)
    def is_shared(self: torch.UntypedStorage) -> bool:
        return self.device.type != "tpu" and original(self)

    torch.UntypedStorage.is_shared = is_shared


def _receive(host: torch.Tensor, device: str, requires_grad: bool, parameter: bool) -> torch.Tensor:
    tensor = host.to(device)
    if parameter:
        return torch.nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)


def _autocast_in_threads() -> None:
    """PyTorch keeps the autocast type per thread and starts a new backend's at float16; ours is
    bfloat16. Ends with a version where a backend can register its type."""
    cls = torch.amp.autocast_mode.autocast
    original = cls.__init__
    seen = threading.local()
    seen.done = True  # this thread's was set when the library was loaded

    @functools.wraps(original)
    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):  # noqa: ANN001, ANN202
        if device_type == "tpu" and not getattr(seen, "done", False):
            seen.done = True
            if torch.get_autocast_dtype("tpu") == torch.float16:
                torch.set_autocast_dtype("tpu", torch.bfloat16)
        original(self, device_type, dtype, enabled, cache_enabled)

    cls.__init__ = __init__


def _lazy_modules() -> None:
    """Uninitialised parameters allow a fixed list of methods; `.tpu()` is made after the list."""
    mixin = torch.nn.parameter.UninitializedTensorMixin
    mixin._allowed_methods.append(torch.Tensor.tpu)


def _meta_device() -> None:
    """Meta kernels written in Python take a meta tensor for one of "cuda" and lay some results out
    as its libraries do; fake tensors of tpu get another answer. Both must be the same. Ends with a
    version whose meta tensors say what they stand for."""
    original = torch._meta_registrations.device_hint

    @functools.wraps(original)
    def device_hint(tensor: Any) -> str:
        return "tpu" if _C.asking_meta() else original(tensor)

    torch._meta_registrations.device_hint = device_hint


def _meta_kernels_without_dynamo() -> None:
    """PyTorch's meta kernels in Python are hidden from torch._dynamo, and to say so their first
    call imports it: a second before the first addition. Until somebody else has imported it there
    is nothing to hide from. Ends with a version that asks `sys.modules` itself."""
    hidden = torch._compile._disable_dynamo(lambda: None).__code__

    def lazily(wrapper: Any) -> None:
        cells = dict(zip(hidden.co_freevars, wrapper.__closure__, strict=True))
        fn, recursive = cells["fn"].cell_contents, cells["recursive"].cell_contents

        def call(*args: Any, **kwargs: Any) -> Any:
            dynamo = sys.modules.get("torch._dynamo")
            if getattr(dynamo, "disable", None) is None:  # not there, or being imported
                return fn(*args, **kwargs)
            fn.__dynamo_disable = dynamo.disable(fn, recursive, wrapping=False)
            return fn.__dynamo_disable(*args, **kwargs)

        fn.__dynamo_disable = call

    seen: set[Any] = set()
    tables = torch._decomp.global_decomposition_table.values()
    left = [kernel for table in tables for kernel in table.values()]
    while left:  # through the decorators, whose functions lie in their closures
        kernel = left.pop()
        if not isinstance(kernel, types.FunctionType) or kernel in seen:
            continue
        seen.add(kernel)
        if kernel.__code__ is hidden:
            lazily(kernel)
        cells = [c for c in kernel.__closure__ or () if c != types.CellType()]
        left += [c.cell_contents for c in cells]


def apply() -> None:
    """Called once, at registration."""
    _print_from_host()
    _dlpack()
    _send_by_host()
    _not_shared()
    _autocast_in_threads()
    _lazy_modules()
    _meta_device()
    _meta_kernels_without_dynamo()
    # Checkpointed functions whose arguments name no device draw their random numbers here.
    torch.utils.checkpoint.DefaultDeviceType.set_device_type("tpu")
