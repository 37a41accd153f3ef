// Graphs over tensors.
#include "graph.h"

#include <c10/core/StorageImpl.h>

#include <ctime>
#include <map>

#include "convert.h"
#include "device.h"
#include "exec/explain.h"
#include "generator.h"
#include "location.h"
#include "tensor.h"

namespace tpu::torch_layer {

using runtime::Value;

bool TensorGraph::Layout::operator==(const Layout& o) const {
  const auto same = [](const runtime::ValueTypeRef& a, const runtime::ValueTypeRef& b) {
    return (!a && !b) || (a && b && a->dtype == b->dtype && a->dims == b->dims);
  };
  return dtype == o.dtype && sizes == o.sizes && strides == o.strides && offset == o.offset &&
         nbytes == o.nbytes && same(contents, o.contents);
}

TensorGraph::Layout TensorGraph::LayoutOf(const at::Tensor& t) {
  runtime::Storage* const s = StateOf(t);
  const Ref<Value> v = s->Get();
  return {t.scalar_type(),    t.sizes().vec(), t.strides().vec(),
          t.storage_offset(), s->nbytes(),     v ? v->type_ref() : nullptr};
}

std::shared_ptr<TensorGraph> TensorGraph::Capture(
    const std::vector<at::Tensor>& inputs,
    const std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>& fn) {
  auto g = std::make_shared<TensorGraph>();
  std::map<const Value*, int> input_of;
  std::map<const runtime::Storage*, int> input_of_storage;
  std::vector<Ref<Value>> before;
  for (size_t i = 0; i < inputs.size(); ++i) {
    runtime::Storage* const s = StateOf(inputs[i]);
    if (g->device_ == nullptr) g->device_ = s->device();
    Check(s->device()->Flush("capture"));
    g->layouts_.push_back(LayoutOf(inputs[i]));
    before.push_back(s->Get());
    if (before.back()) input_of.emplace(before.back().get(), static_cast<int>(i));
    input_of_storage.emplace(s, static_cast<int>(i));
  }
  if (g->device_ == nullptr) g->device_ = DeviceAt(-1);
  std::vector<at::Tensor> results;
  {
    exec::Capture capture(g->device_);
    g->graph_ = Ref<exec::Graph>(capture.graph());
    results = fn(inputs);
  }
  exec::Graph& graph = *g->graph_;

  std::vector<int> wanted;  // the graph's slots that the program returns
  std::map<const Value*, int> program_output;
  const auto want = [&](const Ref<Value>& v) {
    const auto [it, fresh] = program_output.emplace(v.get(), static_cast<int>(wanted.size()));
    if (fresh) wanted.push_back(v->trace_slot);
    return it->second;
  };
  std::map<const runtime::Storage*, int> new_storage;
  for (const at::Tensor& t : results) {
    Output o;
    if (!t.defined()) {
      o.defined = false;
      g->outputs_.push_back(o);
      continue;
    }
    o.dtype = FromScalarType(t.scalar_type());
    o.sizes = t.sizes().vec();
    o.strides = t.strides().vec();
    o.offset = t.storage_offset();
    runtime::Storage* const s = StateOf(t);
    if (const auto in = input_of_storage.find(s); in != input_of_storage.end()) {
      o.input = in->second;
    } else {
      const auto [it, fresh] = new_storage.emplace(s, static_cast<int>(g->storages_.size()));
      if (fresh) {
        const Ref<Value> v = s->Get();
        TORCH_CHECK(v && v->state() == Value::State::kRecorded,
                    "a captured function returned a tensor that it didn't compute");
        g->storages_.push_back({want(v), s->nbytes()});
      }
      o.storage = it->second;
    }
    g->outputs_.push_back(o);
  }
  // In-place writes of inputs are results too. The inputs get their old contents back: Run writes.
  for (size_t i = 0; i < inputs.size(); ++i) {
    runtime::Storage* const s = StateOf(inputs[i]);
    const Ref<Value> v = s->Get();
    if (v == before[i]) continue;
    g->written_inputs_.push_back(static_cast<int>(i));
    g->written_outputs_.push_back(want(v));
    s->Set(before[i]);
  }
  if (wanted.empty()) return g;
  g->recipe_ = Unwrap(graph.Compose(wanted));
  for (const exec::ParamSource& p : g->recipe_->params) {
    int from = -1;
    Ref<Value> constant;
    if (p.kind == exec::ParamSource::Kind::kSlot) {
      const Ref<Value>& v = graph.slots[size_t(p.slot)].value;
      const auto it = input_of.find(v.get());
      it != input_of.end() ? void(from = it->second) : void(constant = v);
    }
    g->param_input_.push_back(from);
    g->param_constant_.push_back(std::move(constant));
  }
  g->text_ = std::move(g->recipe_->text);
  g->program_ = Unwrap(
      exec::RequestProgram(g->text_, {"a graph of " + std::to_string(graph.nodes.size()) + " calls",
                                      "", UserLocation(), "captured anew"}));
  for (exec::Graph::Slot& s : graph.slots) s.value = {};  // inputs are not kept alive
  return g;
}

bool TensorGraph::Accepts(const std::vector<at::Tensor>& inputs) const {
  if (inputs.size() != layouts_.size()) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!(LayoutOf(inputs[i]) == layouts_[i])) return false;
  }
  return true;
}

std::vector<at::Tensor> TensorGraph::Run(const std::vector<at::Tensor>& inputs) {
  std::vector<Ref<Value>> made;
  if (recipe_) {
    for (const at::Tensor& t : inputs) Check(StateOf(t)->device()->Flush("graph"));
    // Each run draws anew for its random calls.
    for (exec::Graph::Node& n : graph_->nodes) {
      if (!n.call.overload->row->random) continue;
      auto* const generator = at::check_generator<TpuGenerator>(
          DefaultGenerator(static_cast<c10::DeviceIndex>(device_->index())));
      std::lock_guard lock(generator->mutex_);
      std::tie(n.call.seed, n.call.seed_offset) = generator->Draw(DrawCount(n.call));
    }
    Ref<Value> words;
    if (recipe_->num_words > 0) words = Unwrap(device_->PackWords(graph_->Words(*recipe_)));
    std::vector<Ref<Value>> arguments(recipe_->params.size());
    for (size_t i = 0; i < arguments.size(); ++i) {
      arguments[i] = param_input_[i] >= 0 ? StateOf(inputs[size_t(param_input_[i])])->Get()
                                          : param_constant_[i];
    }
    for (const exec::OutputSource& o : recipe_->outputs) {
      if (o.kind != exec::OutputSource::Kind::kValue) continue;
      made.push_back(Ref<Value>::Make(device_, o.type, Value::State::kPending));
    }
    Check(exec::Launch(device_, recipe_, program_, &arguments, words, made));
  }
  for (size_t i = 0; i < written_inputs_.size(); ++i) {
    StateOf(inputs[size_t(written_inputs_[i])])->Set(made[size_t(written_outputs_[i])]);
  }
  std::vector<c10::Storage> storages;
  for (const NewStorage& s : storages_) {
    c10::DataPtr data = NewDataPtr(device_, s.nbytes);
    static_cast<runtime::Storage*>(data.get_context())->value = made[size_t(s.program_output)];
    storages.emplace_back(c10::make_intrusive<c10::StorageImpl>(
        c10::StorageImpl::use_byte_size_t(), static_cast<int64_t>(s.nbytes), std::move(data),
        TpuAllocator(), true));
  }
  std::vector<at::Tensor> out;
  for (const Output& o : outputs_) {
    if (!o.defined) {
      out.emplace_back();
      continue;
    }
    const c10::Storage& storage =
        o.input >= 0 ? inputs[size_t(o.input)].storage() : storages[size_t(o.storage)];
    at::Tensor t = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
        c10::scalarTypeToTypeMeta(ToScalarType(o.dtype)));
    t.unsafeGetTensorImpl()->set_sizes_and_strides(o.sizes, o.strides, o.offset);
    out.push_back(std::move(t));
  }
  return out;
}

double TensorGraph::BareExecuteNs(const std::vector<at::Tensor>& inputs, int n) const {
  TORCH_CHECK(program_, "the graph has no program");
  Check(program_->Wait());
  std::vector<PJRT_Buffer*> in, out(recipe_->outputs.size());
  std::vector<Ref<Value>> keep;
  for (size_t i = 0; i < recipe_->params.size(); ++i) {
    TORCH_CHECK(param_input_[i] >= 0, "only graphs whose parameters are all inputs can be timed");
    keep.push_back(StateOf(inputs[size_t(param_input_[i])])->Get());
    Check(keep.back()->WaitReady());
    in.push_back(keep.back()->buffer().get());
  }
  pjrt::ExecuteArgs args;
  args.arguments = in;
  args.results = out;
  args.device = device_->handle();
  timespec start{}, end{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
  for (int i = 0; i < n; ++i) {
    Check(program_->executable().Execute(args));
    for (PJRT_Buffer* b : out) const pjrt::Buffer drop(device_->client()->api(), b);
  }
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  return (static_cast<double>(end.tv_sec - start.tv_sec) * 1e9 +
          static_cast<double>(end.tv_nsec - start.tv_nsec)) /
         n;
}

}  // namespace tpu::torch_layer
