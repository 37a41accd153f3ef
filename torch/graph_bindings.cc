// Bindings of modes, graphs, the TorchScript compiler and ahead-of-time compiles.
#include "graph_bindings.h"

#include <torch/csrc/jit/python/module_python.h>
#include <torch/csrc/jit/python/pybind_utils.h>

#include "convert.h"
#include "exec/mode.h"
#include "graph.h"
#include "pjrt/pjrt.h"
#include "runtime/device.h"
#include "script.h"
#include "work_mode.h"

namespace py = pybind11;

namespace tpu::torch_layer {
namespace {

using Tensors = std::vector<at::Tensor>;

std::shared_ptr<TensorGraph> CapturePython(const Tensors& inputs, const py::function& fn) {
  return TensorGraph::Capture(inputs, [&](const Tensors& args) {
    Tensors out;
    for (const py::handle h : fn(*py::cast(args).cast<py::tuple>())) {
      out.push_back(h.is_none() ? at::Tensor() : h.cast<at::Tensor>());
    }
    return out;
  });
}

void FlushAll(const std::string& reason) {
  if (!runtime::Runtime::Started()) return;
  runtime::Runtime* const rt = Unwrap(runtime::Runtime::Get());
  for (int i = 0; i < rt->num_devices(); ++i) Check(rt->device(i)->Flush(reason.c_str()));
}

py::dict CompileAhead(const std::string& text, const std::string& topology,
                      const std::string& plugin_path, int effort) {
  std::optional<pjrt::CompiledMemoryStats> memory;
  std::optional<std::map<std::string, double>> cost;
  {
    py::gil_scoped_release release;
    pjrt::Plugin* const plugin = Unwrap(pjrt::Plugin::Load(plugin_path));
    const pjrt::Topology t = Unwrap(pjrt::Topology::Create(plugin, topology));
    pjrt::CompileOptions options;
    options.optimization_level = effort;
    const pjrt::Executable exe = Unwrap(t.Compile(text, options));
    if (auto m = exe.MemoryStats(); m.ok()) memory = *m;
    if (auto c = exe.CostAnalysis(); c.ok()) cost = *c;
  }
  py::dict out;
  if (memory) {
    py::dict m;
    m["arguments"] = memory->arguments;
    m["outputs"] = memory->outputs;
    m["temporaries"] = memory->temporaries;
    m["code"] = memory->code;
    m["aliased"] = memory->aliased;
    m["peak"] = memory->peak;
    out["memory"] = m;
  }
  if (cost) out["cost"] = *cost;
  return out;
}

}  // namespace

void BindGraphs(py::module& m) {
  m.def("exchange_mode", &ExchangeWorkMode);
  m.def("flush", &FlushAll, py::call_guard<py::gil_scoped_release>());
  m.def("current_mode", [] { return static_cast<int>(exec::CurrentMode()); });
  py::class_<TensorGraph, std::shared_ptr<TensorGraph>>(m, "TensorGraph")
      .def_static("capture", &CapturePython)
      .def_static("capture_script",
                  [](const torch::jit::Module& module, const Tensors& inputs) {
                    py::gil_scoped_release release;
                    return TensorGraph::Capture(
                        inputs, [&](const Tensors& args) { return RunScript(module, args); });
                  })
      .def("accepts", &TensorGraph::Accepts)
      .def("run", &TensorGraph::Run, py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("text", &TensorGraph::text);
  m.def("bare_execute_ns", &TensorGraph::BareExecuteNs, py::call_guard<py::gil_scoped_release>());
  m.def("compile_ahead", &CompileAhead);
}

}  // namespace tpu::torch_layer
