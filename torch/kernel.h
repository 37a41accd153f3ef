// OpKernel: the boxed kernel of one overload. It turns the stack into a Call, runs it, and puts the
// results back. One class serves every row in all its forms.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>

#include <vector>

#include "exec/call.h"
#include "overlap.h"

namespace tpu::torch_layer {

class OpKernel final : public c10::OperatorKernel {
 public:
  // How an argument is read off the stack.
  enum class Read : uint8_t {
    kTensor,
    kTensors,
    kNumber,
    kInt,
    kInts,
    kBools,
    kFloats,
    kType,
    kString,
    kGenerator,
    kSkip,
  };
  struct Plan {
    std::vector<Read> args;
    std::vector<std::optional<double>> defaults;  // of number arguments
    std::vector<int> scalars;                     // arguments that the schema calls Scalar
    // For each schema return: the position of the argument it aliases, or -1 for a new tensor.
    std::vector<int> returns;
    bool returns_list = false;  // one Tensor[] of all new tensors
    bool is_out = false;
    bool uploads_host_tensors = false;  // CPU index tensors are legal
    Overlap overlap = Overlap::kAllowed;
    int indices = -1;  // the argument whose elements may be masks; self is argument 0
  };
  OpKernel(const exec::Overload* overload, Plan plan)
      : overload_(overload), plan_(std::move(plan)) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack);

 private:
  void Fill(torch::jit::Stack* stack, exec::Call* call, at::Generator* generator,
            std::vector<at::Tensor>* uploaded) const;
  void AddTensor(const at::Tensor& t, exec::Arg* arg, exec::Call* call,
                 std::vector<at::Tensor>* uploaded) const;
  // Masks among the indices become positions. True if the call is done with that.
  bool ReplaceMasks(torch::jit::Stack* stack) const;
  void RunOne(const c10::OperatorHandle& op, torch::jit::Stack* stack);
  // A row that says per_tensor: one call for each position of its lists.
  void RunPerTensor(const c10::OperatorHandle& op, torch::jit::Stack* stack);

  const exec::Overload* const overload_;
  const Plan plan_;
};

// Runs an in-core call whose only results are its targets (copies): no stack, no schema.
void RunTargets(exec::Call* call);

}  // namespace tpu::torch_layer
