"""torch.compile(backend="tpu") and its kin (preview): one XLA program for a graph.

All of them capture: the graph is played once through the dispatcher with its calls recorded,
and the record becomes one program. The operators' lowerings are those of eager mode.
"""

from collections.abc import Callable, Sequence

import torch

from torch_tpu import _C


class CompiledGraph:
    """A function of tensors as XLA programs, one for each layout of its inputs."""

    def __init__(self, fn: Callable) -> None:
        self._fn = fn
        self._graphs: list = []

    def _graph(self, inputs: Sequence[torch.Tensor]):
        for graph in self._graphs:
            if graph.accepts(inputs):
                return graph
        with torch.no_grad():
            graph = _C.TensorGraph.capture(list(inputs), self._fn)
        self._graphs.append(graph)
        return graph

    def __call__(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        return self._graph(inputs).run(inputs)

    def lower(self, *inputs: torch.Tensor) -> str:
        """The StableHLO text of the program for these inputs."""
        return self._graph(inputs).text

    @property
    def texts(self) -> list[str]:
        """The StableHLO text of each program so far."""
        return [g.text for g in self._graphs]


class ShapedGraph:
    """A graph of torch.compile whose arguments and results include sizes: for each set of sizes a
    graph of its own. XLA programs have fixed shapes."""

    def __init__(self, fn: Callable) -> None:
        self._fn = fn
        self._by_sizes: dict[tuple, tuple[CompiledGraph, list]] = {}

    def __call__(self, *inputs: torch.Tensor | int | float) -> list:
        sizes = tuple(None if isinstance(x, torch.Tensor) else x for x in inputs)
        if sizes not in self._by_sizes:
            self._by_sizes[sizes] = self._fix(sizes)
        graph, plan = self._by_sizes[sizes]
        results = iter(graph(*(x for x in inputs if isinstance(x, torch.Tensor))))
        return [next(results) if fixed is _TENSOR else fixed for fixed in plan]

    def _fix(self, sizes: tuple) -> tuple[CompiledGraph, list]:
        plan: list = []  # for each result: it is a tensor, or its value

        def fn(*tensors: torch.Tensor) -> list[torch.Tensor]:
            given = iter(tensors)
            results = self._fn(*(next(given) if s is None else s for s in sizes))
            plan[:] = [_TENSOR if isinstance(r, torch.Tensor) else r for r in results]
            return [r for r in results if isinstance(r, torch.Tensor)]

        return CompiledGraph(fn), plan


_TENSOR = object()


def _compile_graph(gm: torch.fx.GraphModule, example_inputs: Sequence) -> Callable:
    from functorch.compile import make_boxed_func

    return make_boxed_func(ShapedGraph(gm))


def tpu_backend(gm: torch.fx.GraphModule, example_inputs: Sequence, **_options) -> Callable:
    """The torch.compile backend: AOTAutograd, then one program each for forward and backward, for
    each set of sizes."""
    from torch._dynamo.backends.common import aot_autograd

    return aot_autograd(fw_compiler=_compile_graph)(gm, example_inputs)


class CompiledScript:
    """A scripted module (torch.jit.script or trace, in eval mode) as one program."""

    def __init__(self, module: torch.jit.ScriptModule) -> None:
        self._module = module
        self._graphs: list = []

    def __call__(self, *inputs: torch.Tensor):
        for graph in self._graphs:
            if graph.accepts(inputs):
                break
        else:
            with torch.no_grad():
                graph = _C.TensorGraph.capture_script(self._module._c, list(inputs))
            self._graphs.append(graph)
        out = graph.run(inputs)
        return out[0] if len(out) == 1 else tuple(out)


def compile_script(module: torch.jit.ScriptModule) -> CompiledScript:
    """Compiles a scripted module. Conditions and trip counts must not depend on the device."""
    return CompiledScript(module)


def compile_ahead(text: str, topology: str = "v5e:2x2", effort: str = "O1") -> dict:
    """Compiles StableHLO text for a real TPU with none attached, by libtpu.

    Args:
        text: the program.
        topology: chip and grid, as in "v5e:2x2", "v6e:4x4", "tpu7x:2x2x1".
        effort: "O0", "O1" or "O2".

    Returns:
        {"memory": bytes by kind, "cost": XLA's cost analysis (flops, bytes accessed, seconds)}.

    Raises:
        ModuleNotFoundError: libtpu is not installed.
        RuntimeError: what the chip's compiler says, out of memory included.
    """
    import importlib.util
    import os

    spec = importlib.util.find_spec("libtpu")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("ahead-of-time compiles need libtpu: pip install libtpu==0.0.51")
    path = os.path.join(os.path.dirname(spec.origin), "libtpu.so")
    return _C.compile_ahead(text, topology, path, {"O0": 9, "O1": 19, "O2": 29}[effort])
