// Decompose: strided views as chains of reshape, transpose, slice and broadcast. The digits come
// from digits.h; this file turns them into as few steps as it can.
#include "shape/view.h"

#include <algorithm>
#include <utility>

#include "shape/digits.h"

namespace tpu::shape {
namespace {

using internal::Axis;
using internal::Digit;
using internal::Layout;
using internal::MixedRadix;
using internal::Stack;

// ReadPlan::variant. A view's offset may only choose between these, never change one's steps.
//   kNatural  digits along the base's own dimensions
//   kFlat     digits of flat memory, where runs carry across the base's dimensions
//   kWindow+  a contiguous window first, then digits of that: kWindow + 2 * (axis that opens the
//             window) + (1 where the window lies on flat memory)
//   kGather   no digits exist
enum : int { kNatural = 0, kFlat = 1, kGather = 2, kWindow = 3 };

bool SameButOnes(DimsView shape, const Stack<Digit>& digits) {
  int i = 0;
  const auto skip = [&] {
    while (i < digits.size() && digits[i].radix == 1) ++i;
  };
  for (int64_t d : shape) {
    if (d == 1) continue;
    skip();
    if (i == digits.size() || digits[i++].radix != d) return false;
  }
  skip();
  return i == digits.size();
}

bool IsContiguousLike(const View& view, DimsView base) {
  if (view.offset != 0 || view.sizes.size() != base.size() || view.strides.size() != base.size() ||
      !std::equal(base.begin(), base.end(), view.sizes.begin())) {
    return false;
  }
  int64_t stride = 1;
  for (size_t i = base.size(); i-- > 0;) {
    if (base[i] < 0 || view.strides[i] < 0) return false;
    if (base[i] == 1) continue;
    if (base[i] == 0) return true;
    if (view.strides[i] != stride || __builtin_mul_overflow(stride, base[i], &stride)) return false;
  }
  return true;
}

class Reader {
 public:
  Reader(const View& view, DimsView base, const Layout& layout)
      : view_(view), layout_(layout), base_(base) {}

  ReadPlan Read() {
    if (layout_.empty) return ReadEmpty();
    if (layout_.nested) {
      if (TryDigits(layout_.split.span(), layout_.units.span())) return Done(kNatural);
      const bool flat_differs = layout_.units.size() > 1 || layout_.was_split();
      if (flat_differs && TryDigits(layout_.merged.span(), internal::kFlatUnits)) {
        return Done(kFlat);
      }
      if (const int variant = TryWindows(); variant != kGather) return Done(variant);
    }
    Gather();
    plan_.variant = kGather;
    return std::move(plan_);
  }

 private:
  ReadPlan Done(int variant) {
    Arrange();
    plan_.variant = variant;
    return std::move(plan_);
  }

  // The dimensions of what the steps so far give.
  DimsView shape() const { return moved_ ? DimsView(shape_.span()) : base_; }

  template <class Step>
  Step& Append() {
    if (plan_.steps.empty()) plan_.steps.reserve(3);
    return std::get<Step>(plan_.steps.emplace_back(std::in_place_type<Step>));
  }

  void Reshape(DimsView dims) { Append<ReshapeStep>().dims.assign(dims.begin(), dims.end()); }

  bool TryDigits(std::span<const Axis> axes, DimsView units) {
    Stack<int64_t> starts;
    if (!radix_.Factor(axes, units, layout_.numel)) return false;
    if (!radix_.Starts(view_.offset, &starts)) return false;
    Cut(radix_.digits(), starts);
    return true;
  }

  int TryWindows() {
    for (int k = layout_.split.size() - 1; k >= 0; --k) {
      if (TryWindow(layout_.split.span(), k, layout_.units.span())) return kWindow + 2 * k;
      if (k < layout_.merged.size() && TryWindow(layout_.merged.span(), k, internal::kFlatUnits)) {
        return kWindow + 2 * k + 1;
      }
    }
    return kGather;
  }

  // Takes axes k.. to lie in a contiguous window of size * stride of axis k: the window is one run
  // of a last digit with unit 1, and its own digits need not agree with those of the base.
  bool TryWindow(std::span<const Axis> axes, int k, DimsView units) {
    const int64_t length = axes[k].size * axes[k].stride;
    if (length > layout_.numel) return false;
    Stack<Axis> outer;
    for (int i = 0; i < k; ++i) outer.Push(axes[i]);
    outer.Push({length, 1, -1});
    if (!radix_.Factor(outer.span(), units, layout_.numel)) return false;
    MixedRadix inner;
    if (!inner.Factor(axes.subspan(k), internal::kFlatUnits, length)) return false;

    Stack<int64_t> starts, inner_starts;
    if (!radix_.StartsButLast(view_.offset, &starts)) return false;
    // The window starts with the view if there is room for all of it behind; else before the view.
    const Digit& last = radix_.digits()[radix_.digits().size() - 1];
    const int64_t least = std::max<int64_t>(0, starts.back() + length - last.radix);
    const int64_t lead = inner.RoundUp(least);
    if (lead < 0 || lead > starts.back()) return false;
    starts.back() -= lead;
    inner.Starts(lead, &inner_starts);

    Cut(radix_.digits(), starts);
    Stack<Digit> digits;
    Stack<int64_t> digit_starts;
    for (int i = 0; i + 1 < radix_.digits().size(); ++i) {
      const int64_t size = radix_.digits()[i].size;
      digits.Push({1, size, size, 1});
      digit_starts.Push(0);
    }
    for (int i = 0; i < inner.digits().size(); ++i) {
      digits.Push(inner.digits()[i]);
      digit_starts.Push(inner_starts[i]);
    }
    Cut(digits, digit_starts);
    return true;
  }

  // Brings what there is to the shape of the digits' radices, as far as needed, and slices it.
  void Cut(const Stack<Digit>& digits, const Stack<int64_t>& starts) {
    if (std::all_of(digits.begin(), digits.end(), [](const Digit& d) { return d.full(); })) return;
    const DimsView before = shape();
    const bool keep = before.size() <= internal::kMaxDigits && SameButOnes(before, digits);
    Stack<int64_t> from;
    if (keep) {
      for (int64_t d : before) from.Push(d);
    } else {
      for (const Digit& digit : digits) {
        if (digit.radix != 1) from.Push(digit.radix);
      }
      Reshape(from.span());
    }
    Slice(from, digits, starts);
  }

  void Slice(const Stack<int64_t>& from, const Stack<Digit>& digits, const Stack<int64_t>& starts) {
    auto& step = Append<SliceStep>();
    step.sizes.assign(from.size(), 1);
    step.steps.assign(from.size(), 1);
    step.dynamic.assign(from.size(), false);
    int next = 0;
    for (int i = 0; i < from.size(); ++i) {
      if (from[i] == 1) continue;
      while (digits[next].radix == 1) ++next;
      const Digit& digit = digits[next];
      step.sizes[i] = digit.size;
      step.steps[i] = digit.size == 1 ? 1 : digit.step;
      if (digit.dynamic()) {
        step.dynamic[i] = true;
        if (plan_.starts.empty()) plan_.starts.reserve(digits.size());
        plan_.starts.push_back(starts[next]);
      }
      ++next;
    }
    shape_.Clear();
    for (int64_t size : step.sizes) shape_.Push(size);
    moved_ = true;
  }

  // The elements are there, in the order of memory: gives them the view's sizes.
  void Arrange() {
    if (layout_.expanded) {
      ArrangeExpanded();
    } else if (layout_.in_order) {
      if (!std::equal(shape().begin(), shape().end(), view_.sizes.begin(), view_.sizes.end())) {
        Reshape(view_.sizes);
      }
    } else {
      ArrangeTransposed();
    }
  }

  // Whether the dimensions other than 1 are just the view's axes, in the order of memory.
  bool ShapeIsAxes() const {
    int i = 0;
    for (int64_t d : shape()) {
      if (d == 1) continue;
      if (i == layout_.axes.size() || layout_.axes[i++].size != d) return false;
    }
    return i == layout_.axes.size();
  }

  // Dimensions of size 1 go along with a transpose if there are as many as the view has; else they
  // are made in front by the reshape that is needed anyway.
  void ArrangeTransposed() {
    const size_t rank = view_.sizes.size();
    const int num_axes = layout_.axes.size();
    Dims perm(rank, -1);
    if (shape().size() == rank && ShapeIsAxes()) {
      Dims ones;
      size_t next = 0;
      for (size_t i = 0; i < rank; ++i) {
        if (shape()[i] == 1) {
          ones.push_back(static_cast<int64_t>(i));
        } else {
          perm[layout_.axes[static_cast<int>(next++)].dim] = static_cast<int64_t>(i);
        }
      }
      next = 0;
      for (auto& p : perm) {
        if (p < 0) p = ones[next++];
      }
    } else {
      Dims dims(rank, 1);
      const auto num_ones = static_cast<int64_t>(rank) - num_axes;
      for (int i = 0; i < num_axes; ++i) {
        dims[num_ones + i] = layout_.axes[i].size;
        perm[layout_.axes[i].dim] = num_ones + i;
      }
      int64_t next = 0;
      for (auto& p : perm) {
        if (p < 0) p = next++;
      }
      Append<ReshapeStep>().dims = std::move(dims);
    }
    Append<TransposeStep>().perm = std::move(perm);
  }

  // Broadcasts keep the order of dimensions: a transpose of the axes alone goes before.
  void ArrangeExpanded() {
    if (layout_.in_order && BroadcastAsIs()) return;
    Stack<int64_t> sizes;
    for (const Axis& axis : layout_.axes) sizes.Push(axis.size);
    if (!std::equal(shape().begin(), shape().end(), sizes.begin(), sizes.end())) {
      Reshape(sizes.span());
    }
    if (!layout_.in_order) {
      auto& perm = Append<TransposeStep>().perm;
      for (int64_t dim : AxisDims()) {
        int i = 0;
        while (layout_.axes[i].dim != dim) ++i;
        perm.push_back(i);
      }
    }
    BroadcastAxes();
  }

  // Expects the axes in the order of the view's dimensions.
  void BroadcastAxes() {
    auto& step = Append<BroadcastStep>();
    step.dims = view_.sizes;
    step.mapping = AxisDims();
  }

  Dims AxisDims() const {
    Dims dims;
    for (size_t d = 0; d < view_.sizes.size(); ++d) {
      if (view_.sizes[d] != 1 && view_.strides[d] != 0) dims.push_back(static_cast<int64_t>(d));
    }
    return dims;
  }

  // Broadcasts without a reshape before, if each dimension of size 1 finds one to become.
  bool BroadcastAsIs() {
    if (!ShapeIsAxes()) return false;
    Dims mapping;
    int64_t next = 0;  // the first dimension of the view that is still free
    int axis = 0;
    for (int64_t d : shape()) {
      if (d != 1) {
        next = layout_.axes[axis++].dim;
      } else if (next >= static_cast<int64_t>(view_.sizes.size()) ||
                 (view_.sizes[next] != 1 && view_.strides[next] != 0)) {
        return false;
      }
      mapping.push_back(next++);
    }
    auto& step = Append<BroadcastStep>();
    step.dims = view_.sizes;
    step.mapping = std::move(mapping);
    return true;
  }

  void Gather() {
    if (base_.size() != 1) Append<ReshapeStep>().dims = {layout_.numel};
    auto& step = Append<GatherStep>();
    plan_.starts = {view_.offset};
    if (layout_.expanded) {
      for (int64_t dim : AxisDims()) {
        step.sizes.push_back(view_.sizes[dim]);
        step.strides.push_back(view_.strides[dim]);
      }
      BroadcastAxes();
    } else {
      step.sizes = view_.sizes;
      step.strides = view_.strides;
      for (size_t d = 0; d < step.sizes.size(); ++d) {
        if (step.sizes[d] == 1) step.strides[d] = 0;  // says nothing, so must not tell plans apart
      }
    }
  }

  ReadPlan ReadEmpty() {
    if (layout_.numel == 0) {
      if (!std::equal(base_.begin(), base_.end(), view_.sizes.begin(), view_.sizes.end())) {
        Reshape(view_.sizes);
      }
    } else if (base_.empty()) {
      Append<BroadcastStep>().dims = view_.sizes;
    } else {
      auto& step = Append<SliceStep>();
      step.steps.assign(base_.size(), 1);
      step.dynamic.assign(base_.size(), false);
      const bool within =
          std::equal(base_.begin(), base_.end(), view_.sizes.begin(), view_.sizes.end(),
                     [](int64_t have, int64_t want) { return want <= have; });
      step.sizes.assign(base_.begin(), base_.end());
      step.sizes[0] = 0;
      if (within) step.sizes = view_.sizes;
      if (step.sizes != view_.sizes) Reshape(view_.sizes);
    }
    return std::move(plan_);
  }

  const View& view_;
  const Layout& layout_;
  DimsView base_;
  ReadPlan plan_;
  MixedRadix radix_;
  bool moved_ = false;  // shape_ says what there is; else the base does
  Stack<int64_t> shape_;
};

}  // namespace

Result<ReadPlan> Decompose(const View& view, DimsView base) {
  if (IsContiguousLike(view, base)) return ReadPlan{};
  Layout layout;
  TPU_RETURN_IF_ERROR(internal::Analyze(view, base, &layout));
  return Reader(view, base, layout).Read();
}

}  // namespace tpu::shape
