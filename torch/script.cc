// The TorchScript compiler (preview).
#include "script.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/freeze_module.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <unordered_map>

namespace tpu::torch_layer {
namespace {

using torch::jit::Block;
using torch::jit::IValue;
using torch::jit::Node;
using torch::jit::Stack;
using torch::jit::Value;

class Walker {
 public:
  void Bind(const Value* v, IValue value) { values_[v] = std::move(value); }
  const IValue& Get(const Value* v) const { return values_.at(v); }

  void Run(const Block* block) {
    for (const Node* n : block->nodes()) RunNode(n);
  }

 private:
  void RunNode(const Node* n) {
    if (n->kind() == c10::prim::Constant) {
      Bind(n->output(), n->output()->type()->kind() == c10::TypeKind::NoneType
                            ? IValue()
                            : *torch::jit::toIValue(n->output()));
    } else if (n->kind() == c10::prim::If) {
      RunIf(n);
    } else if (n->kind() == c10::prim::Loop) {
      RunLoop(n);
    } else {
      RunOperator(n);
    }
  }

  void RunIf(const Node* n) {
    const IValue& condition = Get(n->input());
    Check(condition.isBool(), n, "a condition that depends on the device");
    const Block* const taken = n->blocks()[condition.toBool() ? 0 : 1];
    Run(taken);
    for (size_t i = 0; i < n->outputs().size(); ++i)
      Bind(n->outputs()[i], Get(taken->outputs()[i]));
  }

  // Inputs: trip count, first condition, carried values. Body: (i, carried...) -> (condition,
  // carried...).
  void RunLoop(const Node* n) {
    const Block* const body = n->blocks()[0];
    const int64_t trips = Get(n->inputs()[0]).toInt();
    bool go_on = Get(n->inputs()[1]).toBool();
    std::vector<IValue> carried;
    for (size_t i = 2; i < n->inputs().size(); ++i) carried.push_back(Get(n->inputs()[i]));
    for (int64_t i = 0; go_on && i < trips; ++i) {
      Bind(body->inputs()[0], i);
      for (size_t k = 0; k < carried.size(); ++k) Bind(body->inputs()[k + 1], carried[k]);
      Run(body);
      const IValue& condition = Get(body->outputs()[0]);
      Check(condition.isBool(), n, "a loop condition that depends on the device");
      go_on = condition.toBool();
      for (size_t k = 0; k < carried.size(); ++k) carried[k] = Get(body->outputs()[k + 1]);
    }
    for (size_t k = 0; k < carried.size(); ++k) Bind(n->outputs()[k], carried[k]);
  }

  // Every ATen operator, and the primitives on lists, tuples and numbers that PyTorch itself has.
  void RunOperator(const Node* n) {
    const auto* const op = n->maybeOperator();
    Check(op != nullptr, n, "an operator that is not registered");
    Stack stack;
    for (const Value* v : n->inputs()) stack.push_back(Get(v));
    op->getOperation(n)(stack);
    Check(stack.size() == n->outputs().size(), n, "an operator with other outputs than its node");
    for (size_t i = 0; i < stack.size(); ++i) Bind(n->outputs()[i], stack[i]);
  }

  static void Check(bool ok, const Node* n, const char* what) {
    TORCH_CHECK_NOT_IMPLEMENTED(ok, "the TorchScript compiler can't compile ", what, ": ",
                                n->kind().toQualString(), "\n", n->sourceRange().str());
  }

  std::unordered_map<const Value*, IValue> values_;
};

}  // namespace

std::vector<at::Tensor> RunScript(const torch::jit::Module& module,
                                  const std::vector<at::Tensor>& inputs) {
  TORCH_CHECK(!module.is_training(),
              "the TorchScript compiler takes modules in eval mode: call .eval()");
  const torch::jit::Module frozen = torch::jit::freeze_module(module);
  const auto graph = frozen.get_method("forward").graph()->copy();
  torch::jit::Inline(*graph);
  TORCH_CHECK(graph->inputs().size() == inputs.size() + 1, "forward takes ",
              graph->inputs().size() - 1, " inputs, got ", inputs.size());
  Walker walker;
  walker.Bind(graph->inputs()[0], frozen._ivalue());
  for (size_t i = 0; i < inputs.size(); ++i) walker.Bind(graph->inputs()[i + 1], inputs[i]);
  walker.Run(graph->block());
  std::vector<at::Tensor> out;
  for (const Value* v : graph->outputs()) {
    const IValue& value = walker.Get(v);
    if (value.isTensor()) {
      out.push_back(value.toTensor());
    } else if (value.isTuple()) {
      for (const IValue& e : value.toTupleRef().elements()) out.push_back(e.toTensor());
    } else {
      TORCH_CHECK_NOT_IMPLEMENTED(false, "the TorchScript compiler returns tensors, not ",
                                  value.tagKind());
    }
  }
  return out;
}

}  // namespace tpu::torch_layer
