// Overlap of arguments.
#include "overlap.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>

#include <algorithm>

namespace tpu::torch_layer {
namespace {

using exec::Arg;

// Checked by the CPU although their kinds don't tell.
constexpr std::string_view kSameByName[] = {"aten::cumprod", "aten::cumsum", "aten::sort.stable"};
constexpr std::string_view kRefusedByName[] = {"aten::cat", "aten::linalg_cross"};

bool Shares(const exec::Call& call, const Arg& a, const runtime::Storage* storage) {
  if (a.kind == Arg::Kind::kTensor) return call.tensors[a.at].storage == storage;
  if (a.kind != Arg::Kind::kTensors) return false;
  const auto* const first = call.tensors.data() + a.at;
  return std::any_of(first, first + a.count, [&](const auto& t) { return t.storage == storage; });
}

void Check(Overlap rule, const at::Tensor& written, const at::Tensor& read) {
  if (!read.defined() || !read.is_alias_of(written)) return;
  if (rule == Overlap::kSame) return at::assert_no_partial_overlap(written, read);
  at::assert_no_overlap(written, read);
}

}  // namespace

Overlap OverlapOf(const ops::OpDef& row) {
  if (ops::IsPointwise(row.kind)) return Overlap::kSame;
  if (std::ranges::find(kSameByName, row.name) != std::end(kSameByName)) return Overlap::kSame;
  if (std::ranges::find(kRefusedByName, row.name) != std::end(kRefusedByName)) {
    return Overlap::kRefused;
  }
  const bool indexes = row.kind == ops::Kind::kIndexing || row.kind == ops::Kind::kScatter;
  return indexes && !row.indexes.empty() ? Overlap::kRefused : Overlap::kAllowed;
}

void CheckOverlap(Overlap rule, const exec::Call& call, const c10::IValue* args) {
  const std::vector<int>& targets = call.overload->targets;
  for (const int target : targets) {
    if (target < 0) continue;
    const Arg& written = call.args[size_t(target)];
    if (written.kind != Arg::Kind::kTensor) continue;
    const runtime::Storage* const storage = call.tensors[written.at].storage;
    for (size_t i = 0; i < call.args.size(); ++i) {
      if (!Shares(call, call.args[i], storage) || std::ranges::count(targets, int(i)) > 0) continue;
      const at::Tensor& to = args[target].toTensor();
      if (args[i].isTensor()) {
        Check(rule, to, args[i].toTensor());
        continue;
      }
      for (const c10::IValue& e : args[i].toListRef()) {
        if (e.isTensor()) Check(rule, to, e.toTensor());
      }
    }
  }
}

}  // namespace tpu::torch_layer
