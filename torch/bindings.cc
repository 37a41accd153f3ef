// The Python binding: thin functions over the library. The only file that includes torch's Python
// headers.
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <unordered_map>

#include "base/counters.h"
#include "base/flags.h"
#include "convert.h"
#include "copy.h"
#include "device.h"
#include "exec/composer.h"
#include "exec/executor.h"
#include "exec/explain.h"
#include "generator.h"
#include "graph_bindings.h"
#include "host_memory.h"
#include "interrupt.h"
#include "location.h"
#include "meta.h"
#include "register_rows.h"
#include "runtime/wait.h"
#include "stream.h"
#include "tensor.h"

namespace py = pybind11;

namespace tpu::torch_layer {
namespace {

using NoGil = py::call_guard<py::gil_scoped_release>;

// What a signal handler raised during a wait, kept until the wait has unwound.
thread_local std::unique_ptr<python_error> interrupt;

bool Interrupted() {
  if (!Py_IsInitialized()) return false;
  py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() == 0) return false;
  interrupt = std::make_unique<python_error>();
  interrupt->persist();
  return true;
}

void* ReleaseGil() {
  if (Py_IsInitialized() == 0 || _Py_IsFinalizing() != 0 || PyGILState_Check() == 0) return nullptr;
  return PyEval_SaveThread();
}
void RestoreGil(void* state) {
  if (state != nullptr) PyEval_RestoreThread(static_cast<PyThreadState*>(state));
}

// Progress is for people: nothing is written where standard error is a file or a pipe.
void ShowProgress(const std::string& line) {
  static const bool terminal = isatty(STDERR_FILENO) == 1;
  if (!terminal) return;
  std::cerr << "\r\033[K" << (line.empty() ? "" : "torch_tpu: ") << line << std::flush;
}

// Folders whose frames are not the user's.
std::vector<std::string>& OwnFolders() {
  static auto* const folders = new std::vector<std::string>;
  return *folders;
}

// The file of the frame's code, or nothing if it isn't the user's. Remembered, because calls that
// index ask each time.
const std::string& UserFile(PyFrameObject* frame) {
  static auto* const files = new std::unordered_map<PyCodeObject*, std::string>;
  PyCodeObject* const code = PyFrame_GetCode(frame);
  if (const auto it = files->find(code); it != files->end()) {
    Py_DECREF(code);
    return it->second;
  }
  constexpr size_t kMaxFiles = 20'000;
  if (files->size() == kMaxFiles) {
    for (const auto& [key, file] : *files) Py_DECREF(key);
    files->clear();
  }
  auto file = py::handle(reinterpret_cast<PyObject*>(code)).attr("co_filename").cast<std::string>();
  if (file.starts_with("<frozen") || std::ranges::any_of(OwnFolders(), [&](const std::string& f) {
        return file.starts_with(f);
      })) {
    file.clear();
  }
  return (*files)[code] = std::move(file);  // keeps the reference to the code
}

// The innermost frame that is neither PyTorch's nor ours.
std::string Locate() {
  if (Py_IsInitialized() == 0 || _Py_IsFinalizing() != 0) return {};
  const py::gil_scoped_acquire gil;
  auto frame = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    auto* const f = reinterpret_cast<PyFrameObject*>(frame.ptr());
    const std::string& file = UserFile(f);
    if (!file.empty()) return file + ":" + std::to_string(PyFrame_GetLineNumber(f));
    frame = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
  }
  return {};
}

void Initialize(std::vector<std::string> search_dirs) {
  runtime::Runtime::SetSearchDirs(std::move(search_dirs));
  runtime::Runtime::SetStartMessage(
      [](const std::string& line) { std::cerr << "torch_tpu: " << line << std::endl; });
  runtime::SetWaitHooks({&Interrupted, &ShowProgress, &ReleaseGil, &RestoreGil});
  runtime::Device::SetIndexDescriber(&exec::DescribeIndexRecord);
  for (const char* package : {"torch", "torch_tpu"}) {
    const auto file = py::module_::import(package).attr("__file__").cast<std::string>();
    OwnFolders().push_back(file.substr(0, file.rfind('/') + 1));
  }
  SetLocator(&Locate);
  SetInterruptThrower([] {
    if (!interrupt) return;
    python_error error(std::move(*interrupt));
    interrupt.reset();
    throw error;
  });
  RegisterRows();
}

py::list ProgramsList() {
  py::list out;
  for (const exec::ProgramRecord& r : exec::ProgramRecords()) {
    py::dict row;
    row["op"] = r.reason.op;
    row["operands"] = r.reason.operands;
    row["location"] = r.reason.location;
    row["cause"] = r.reason.cause;
    switch (r.source) {
      case runtime::ProgramSource::kMemory: row["source"] = "shared"; break;
      case runtime::ProgramSource::kDisk: row["source"] = "disk"; break;
      default: row["source"] = "compiled"; break;
    }
    row["seconds"] = static_cast<double>(r.compile_ns->load()) * 1e-9;
    out.append(row);
  }
  return out;
}

py::dict CountersDict() {
  py::dict out;
  for (const auto& [name, value] : Snapshot()) out[py::str(name)] = value;
  for (const auto& [name, value] : SnapshotNamed()) out[py::str(name)] = value;
  out["programs"] = exec::EntryCache::Get().size();
  out["program_bytes"] = runtime::Program::TotalBytes().load();
  return out;
}

std::string StatusText(ops::StatusKind kind) {
  switch (kind) {
    case ops::StatusKind::kDone: return "done";
    case ops::StatusKind::kPartial: return "partial";
    case ops::StatusKind::kRefused: return "refused";
    case ops::StatusKind::kHost: return "host";
  }
  return "";
}

py::list OpsList() {
  py::list out;
  std::map<const ops::OpDef*, py::list> overloads;
  for (const RegisteredOp& r : RegisteredOps()) overloads[r.row].append(r.name);
  for (const ops::OpDef* row : ops::AllOps()) {
    py::dict d;
    d["name"] = std::string(row->name);
    d["kind"] = std::string(ops::KindName(row->kind));
    d["status"] = StatusText(row->status);
    d["note"] = std::string(row->note);
    d["indexes"] = std::string(row->indexes);
    d["statics"] = std::string(row->statics);
    d["random"] = row->random;
    d["overloads"] = overloads[row];
    out.append(d);
  }
  return out;
}

py::dict InfoDict() {
  py::dict out;
  out["started"] = runtime::Runtime::Started();
  py::list flags;
  for (const FlagRow& f : ListFlags()) {
    py::dict d;
    d["name"] = f.name;
    d["variable"] = f.variable;
    d["value"] = f.value;
    d["doc"] = f.doc;
    flags.append(d);
  }
  out["flags"] = flags;
  if (!runtime::Runtime::Started()) return out;
  runtime::Runtime* const rt = Unwrap(runtime::Runtime::Get());
  out["plugin"] = rt->plugin().path();
  out["plugin_reason"] = rt->reason();
  out["pjrt_api_minor"] = rt->plugin().minor_version();
  out["platform"] = rt->client().platform_name();
  out["platform_version"] = rt->client().platform_version();
  out["devices"] = rt->num_devices();
  out["device_kind"] = rt->device(0)->info().kind;
  const runtime::Capabilities& c = rt->device(0)->capabilities();
  py::dict caps;
  caps["linear_layout"] = c.linear_layout;
  caps["host_readable"] = c.host_readable;
  caps["inline_execute"] = c.inline_execute;
  caps["native_64bit"] = c.native_64bit;
  out["capabilities"] = caps;
  out["cache_dir"] = rt->programs().disk() ? rt->programs().disk()->dir() : std::string();
  return out;
}

py::dict DeviceProperties(int index) {
  runtime::Device* const device = DeviceAt(static_cast<c10::DeviceIndex>(index));
  runtime::Runtime* const rt = Unwrap(runtime::Runtime::Get());
  py::dict out;
  out["index"] = device->index();
  out["name"] = device->info().kind;
  out["platform"] = rt->client().platform_name();
  out["total_memory"] = device->TotalMemory();
  out["is_tpu"] = rt->is_tpu();
  out["native_64bit"] = device->capabilities().native_64bit;
  return out;
}

py::dict MemoryStats(int index) {
  py::dict out;
  if (!runtime::Runtime::Started()) return out;
  const runtime::MemoryCounts& m = DeviceAt(static_cast<c10::DeviceIndex>(index))->memory;
  out["current"] = m.current.load();
  out["peak"] = m.peak.load();
  out["allocated"] = m.allocated.load();
  out["freed"] = m.freed.load();
  out["live"] = m.live.load();
  out["live_peak"] = m.live_peak.load();
  out["num_ooms"] = m.num_ooms.load();
  return out;
}

PYBIND11_MODULE(_C, m) {
  m.doc() = "Native part of torch_tpu.";
  BindGraphs(m);
  m.def("initialize", &Initialize);
  m.def("device_count", [] { return runtime::Runtime::DeviceCount(); }, NoGil());
  m.def("current_device", [] { return static_cast<int>(CurrentDevice()); });
  m.def("set_device", [](int i) { SetCurrentDevice(static_cast<c10::DeviceIndex>(i)); });
  m.def("is_started", &runtime::Runtime::Started);
  m.def("in_forked_child", &runtime::Runtime::InForkedChild);
  m.def("start", [] { DeviceAt(-1); }, NoGil());
  m.def("shutdown", &runtime::Runtime::Shutdown, NoGil());
  m.def(
      "synchronize",
      [](int i) { Check(DeviceAt(static_cast<c10::DeviceIndex>(i))->Synchronize()); }, NoGil());
  m.def("default_generator",
        [](int i) { return DefaultGenerator(static_cast<c10::DeviceIndex>(i)); });
  m.def(
      "event_elapsed_ms",
      [](uintptr_t start, uintptr_t end) {
        return ElapsedMs(reinterpret_cast<StreamEvent*>(start),
                         reinterpret_cast<StreamEvent*>(end));
      },
      NoGil());
  m.def("device_properties", &DeviceProperties);
  m.def("asking_meta", &AskingMeta);
  m.def("program_records", &ProgramsList);
  m.def("clear_program_records", &exec::ClearProgramRecords);
  m.def("forbid_compiles", &exec::ForbidCompiles);
  m.def("user_location", &Locate);
  m.def("counters", &CountersDict);
  m.def("reset_counters", &ResetCounters);
  m.def("ops", &OpsList);
  m.def("info", &InfoDict);
  m.def("memory_stats", &MemoryStats);
  m.def("empty_cache", &EmptyCaches, NoGil());
  m.def("set_flag", [](const std::string& n, const std::string& v) { Check(SetFlag(n, v)); });
  m.def("get_flag", [](const std::string& n) { return Unwrap(GetFlag(n)); });
  m.def("set_memory_limit", [](int i, int64_t bytes) {
    DeviceAt(static_cast<c10::DeviceIndex>(i))->memory_limit = bytes;
  });
  m.def("memory_limit",
        [](int i) { return DeviceAt(static_cast<c10::DeviceIndex>(i))->memory_limit.load(); });
  m.def("total_memory",
        [](int i) { return DeviceAt(static_cast<c10::DeviceIndex>(i))->TotalMemory(); });
  m.def("to_cpu", [](const at::Tensor& t) { return ViewOnHost(t).tensor.clone(); }, NoGil());
}

}  // namespace
}  // namespace tpu::torch_layer
