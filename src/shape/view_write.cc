// Invert: how a dense value gets into a base through a strided view; and what a view covers.
#include <algorithm>
#include <utility>

#include "shape/digits.h"
#include "shape/view.h"

namespace tpu::shape {
namespace {

using internal::Axis;
using internal::Digit;
using internal::Layout;
using internal::MixedRadix;
using internal::Stack;

enum : int { kNatural = 0, kFlat = 1, kScatterVariant = 2 };

// Digits as dimensions of the base: its own where these agree but for sizes of 1.
void FillSlice(const MixedRadix& radix, const Stack<int64_t>& starts, DimsView base,
               WritePlan* plan) {
  const auto& digits = radix.digits();
  Dims own(base.begin(), base.end());
  std::erase(own, 1);
  const bool keep = std::equal(own.begin(), own.end(), digits.begin(), digits.end(),
                               [](int64_t d, const Digit& digit) { return d == digit.radix; });
  plan->base_dims.clear();
  if (keep) {
    plan->base_dims.assign(base.begin(), base.end());
  } else {
    for (const Digit& digit : digits) plan->base_dims.push_back(digit.radix);
  }
  const size_t rank = plan->base_dims.size();
  plan->kind = WritePlan::Kind::kSlice;
  plan->update_dims.assign(rank, 1);
  plan->dynamic.assign(rank, false);
  Dims steps(rank, 1);
  int next = 0;
  for (size_t i = 0; i < rank; ++i) {
    if (plan->base_dims[i] == 1) continue;
    const Digit& digit = digits[next];
    plan->update_dims[i] = digit.size;
    if (digit.size > 1 && digit.step > 1) {
      steps[i] = digit.step;
      plan->kind = WritePlan::Kind::kMasked;
    }
    if (digit.dynamic()) {
      plan->dynamic[i] = true;
      plan->starts.push_back(starts[next]);
    }
    ++next;
  }
  if (plan->kind == WritePlan::Kind::kMasked) plan->steps = std::move(steps);
}

void FillScatter(const View& view, int64_t numel, WritePlan* plan) {
  plan->kind = WritePlan::Kind::kScatter;
  plan->value_perm = Iota(static_cast<int64_t>(view.sizes.size()));
  plan->update_dims = view.sizes;
  plan->base_dims = {numel};
  plan->scatter_strides = view.strides;
  for (size_t d = 0; d < view.sizes.size(); ++d) {
    if (view.sizes[d] == 1) plan->scatter_strides[d] = 0;  // must not tell plans apart
  }
  plan->starts = {view.offset};
  plan->variant = kScatterVariant;
}

// A view that stays in its base covers it if it reaches as many elements, each once; and one that
// covers memory without gaps merges into a single progression.
bool Covers(const Layout& layout) {
  if (layout.expanded || !layout.nested) return false;
  if (layout.merged.empty()) return layout.numel == 1;
  return layout.merged.size() == 1 && layout.merged[0].size == layout.numel;
}

}  // namespace

Result<WritePlan> Invert(const View& view, DimsView base) {
  Layout layout;
  TPU_RETURN_IF_ERROR(internal::Analyze(view, base, &layout));
  WritePlan plan;
  if (layout.empty) return plan;
  if (layout.expanded || (!layout.nested && OverlapsItself(view))) {
    return InvalidArgument(
        "unsupported operation: more than one element of the written-to tensor refers to a single "
        "memory location. Please clone() the tensor before performing the operation. (view of "
        "sizes ",
        ToString(view.sizes), " and strides ", ToString(view.strides), ")");
  }
  if (!layout.nested) {
    FillScatter(view, layout.numel, &plan);
    return plan;
  }
  if (Covers(layout)) {
    plan.kind = WritePlan::Kind::kFull;
    plan.value_perm = PhysicalOrder(view);
    plan.update_dims.assign(base.begin(), base.end());
    plan.base_dims = plan.update_dims;
    return plan;
  }
  MixedRadix radix;
  Stack<int64_t> starts;
  for (int variant : {kNatural, kFlat}) {
    const bool natural = variant == kNatural;
    const auto axes = natural ? layout.split.span() : layout.merged.span();
    const DimsView units = natural ? layout.units.span() : DimsView(internal::kFlatUnits);
    if (radix.Factor(axes, units, layout.numel) && radix.Starts(view.offset, &starts)) {
      FillSlice(radix, starts, base, &plan);
      plan.value_perm = PhysicalOrder(view);
      plan.variant = variant;
      return plan;
    }
  }
  FillScatter(view, layout.numel, &plan);
  return plan;
}

bool CoversDensely(const View& view, int64_t numel) {
  if (numel == 0) return NumElements(view.sizes) == 0;
  const int64_t base[] = {numel};
  Layout layout;
  if (!internal::Analyze(view, base, &layout).ok() || layout.empty) return false;
  return Covers(layout);
}

Dims PhysicalOrder(const View& view) {
  Dims dims;
  for (size_t d = 0; d < view.sizes.size(); ++d) {
    if (view.sizes[d] != 1) dims.push_back(static_cast<int64_t>(d));
  }
  std::stable_sort(dims.begin(), dims.end(),
                   [&](int64_t a, int64_t b) { return view.strides[a] > view.strides[b]; });
  Dims order(view.sizes.size());
  size_t next = 0;
  for (size_t d = 0; d < order.size(); ++d) {
    order[d] = view.sizes[d] == 1 ? static_cast<int64_t>(d) : dims[next++];
  }
  return order;
}

}  // namespace tpu::shape
