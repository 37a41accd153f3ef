// Graphs over tensors: a function's calls captured once and run again with new inputs as one
// program. torch.compile's backend and the TorchScript compiler end here.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "exec/trace.h"

namespace tpu::torch_layer {

class TensorGraph {
 public:
  // Calls `fn` on `inputs` with its device calls recorded, and compiles them. Results of `fn` may
  // be new tensors, views of them, or inputs. `fn` may not read from the device.
  static std::shared_ptr<TensorGraph> Capture(
      const std::vector<at::Tensor>& inputs,
      const std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>& fn);

  // Runs the program on inputs of the captured layout (see Accepts).
  std::vector<at::Tensor> Run(const std::vector<at::Tensor>& inputs);
  // Whether dtypes, sizes, strides and the contents' shapes are those of the capture.
  bool Accepts(const std::vector<at::Tensor>& inputs) const;
  // Nanoseconds of thread CPU time of one bare PJRT execute of the program, over `n`: what a
  // benchmark compares the whole call with. No state changes.
  double BareExecuteNs(const std::vector<at::Tensor>& inputs, int n) const;
  const std::string& text() const { return text_; }  // StableHLO

 private:
  struct Output {
    int input = -1;    // an input as it is
    int storage = -1;  // which new storage
    bool defined = true;
    DType dtype = DType::kInvalid;
    std::vector<int64_t> sizes, strides;
    int64_t offset = 0;
  };
  struct NewStorage {
    int program_output;
    size_t nbytes;
  };
  struct Layout {
    c10::ScalarType dtype;
    std::vector<int64_t> sizes, strides;
    int64_t offset;
    size_t nbytes;
    runtime::ValueTypeRef contents;
    bool operator==(const Layout&) const;
  };
  static Layout LayoutOf(const at::Tensor& t);

  runtime::Device* device_ = nullptr;
  std::vector<Layout> layouts_;
  Ref<exec::Graph> graph_;
  Ref<exec::Recipe> recipe_;
  Ref<runtime::Program> program_;
  std::vector<int> param_input_;  // which input's storage each parameter is, or -1
  std::vector<Ref<runtime::Value>> param_constant_;  // contents captured from elsewhere
  std::vector<Output> outputs_;
  std::vector<NewStorage> storages_;
  std::vector<int> written_inputs_;  // program outputs that replace an input's contents
  std::vector<int> written_outputs_;
  std::string text_;
};

}  // namespace tpu::torch_layer
