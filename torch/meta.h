// Asking PyTorch's meta kernels: sizes, strides and dtypes of a call's results, and every check and
// error text of PyTorch's own. Only on a miss.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <exception>
#include <vector>

#include "exec/executor.h"
#include "kernel.h"
#include "location.h"

namespace tpu::torch_layer {

// True while this thread asks a meta kernel for a tpu call. Meta tensors name no device, and
// kernels written in Python that differ by device would answer for another one (see _patches.py).
bool AskingMeta();

class MetaFrontend final : public exec::Frontend {
 public:
  // `args`: the stack's arguments of `op`, which outlive this.
  MetaFrontend(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> args,
               const exec::Overload* overload, const OpKernel::Plan* plan)
      : op_(op), args_(args), overload_(overload), plan_(plan) {}

  Result<std::vector<exec::ResultSpec>> Expect(const exec::Call& call) override;
  std::string Location() override { return UserLocation(); }

  // What a meta kernel threw. Rethrow it instead of the Status that Expect returned.
  std::exception_ptr thrown() const { return thrown_; }
  // out= tensors whose sizes must change before the call can run: argument, sizes, strides.
  struct Resize {
    size_t arg;
    std::vector<int64_t> sizes, strides;
  };
  const std::vector<Resize>& resizes() const { return resizes_; }

 private:
  std::vector<exec::ResultSpec> Ask();
  const c10::OperatorHandle& op_;
  const c10::ArrayRef<c10::IValue> args_;
  const exec::Overload* const overload_;
  const OpKernel::Plan* const plan_;
  std::exception_ptr thrown_;
  std::vector<Resize> resizes_;
};

}  // namespace tpu::torch_layer
