// Choosing the digits. See digits.h; the notation: an axis of n elements, s apart, reaches (n-1)*s.
#include "shape/digits.h"

#include <algorithm>
#include <numeric>

namespace tpu::shape::internal {
namespace {

Status OutsideBase(const View& view, DimsView base, const char* why) {
  return InvalidArgument("view of sizes ", ToString(view.sizes), ", strides ",
                         ToString(view.strides), " and offset ", view.offset, " ", why,
                         " (base of sizes ", ToString(base), ")");
}

// Fills numel, empty and expanded.
Status CheckRange(const View& view, DimsView base, Layout* layout) {
  if (view.sizes.size() != view.strides.size()) {
    return OutsideBase(view, base, "has not one stride for each size");
  }
  int64_t numel = 1;
  bool overflow = false;
  for (int64_t d : base) {
    if (d < 0) return OutsideBase(view, base, "has a base with a negative size");
    overflow |= __builtin_mul_overflow(numel, std::max<int64_t>(d, 1), &numel);
  }
  if (overflow || numel > kMaxElements) {
    return OutsideBase(view, base, "has a base with too many elements");
  }
  for (int64_t d : base) numel = d == 0 ? 0 : numel;
  layout->numel = numel;

  int64_t last = view.offset;
  overflow = false;
  for (size_t i = 0; i < view.sizes.size(); ++i) {
    const int64_t size = view.sizes[i];
    const int64_t stride = view.strides[i];
    if (size < 0) return OutsideBase(view, base, "has a negative size");
    if (stride < 0) return OutsideBase(view, base, "has a negative stride");
    layout->empty |= size == 0;
    layout->expanded |= size > 1 && stride == 0;
    int64_t reach = 0;
    overflow |= size > 1 && __builtin_mul_overflow(size - 1, stride, &reach);
    overflow |= __builtin_add_overflow(last, reach, &last);
  }
  if (view.offset < 0) return OutsideBase(view, base, "starts before its base");
  if (!layout->empty && (overflow || last >= numel)) {
    return OutsideBase(view, base, "reaches beyond the end of its base");
  }
  return {};
}

// Collects the axes by decreasing stride. False if there are too many.
bool CollectAxes(const View& view, Layout* layout) {
  auto& axes = layout->axes;
  for (size_t d = 0; d < view.sizes.size(); ++d) {
    if (view.sizes[d] == 1 || view.strides[d] == 0) continue;
    const Axis axis{view.sizes[d], view.strides[d], static_cast<int>(d)};
    if (!axes.Push(axis)) return false;
    int i = axes.size() - 1;
    for (; i > 0 && axes[i - 1].stride < axis.stride; --i) axes[i] = axes[i - 1];
    if (i < axes.size() - 1) layout->in_order = false;
    axes[i] = axis;
  }
  return true;
}

bool IsNested(const Stack<Axis>& axes) {
  int64_t inner = 0;
  for (int i = axes.size() - 1; i >= 0; --i) {
    if (axes[i].stride <= inner) return false;
    inner += axes[i].reach();
  }
  return true;
}

void SplitAtUnits(const Axis& axis, const Stack<int64_t>& units, Stack<Axis>* out) {
  int64_t top = axis.size * axis.stride;
  for (int64_t unit : units) {
    if (unit >= top) continue;
    if (unit <= axis.stride) break;
    if (Mod(top, unit) != 0 || Mod(unit, axis.stride) != 0) continue;
    out->Push({Div(top, unit), unit, -1});
    top = unit;
  }
  out->Push({Div(top, axis.stride), axis.stride, -1});
}

}  // namespace

Status Analyze(const View& view, DimsView base, Layout* layout) {
  TPU_RETURN_IF_ERROR(CheckRange(view, base, layout));
  if (layout->empty) return {};
  int64_t unit = 1;
  for (size_t i = base.size(); i-- > 0;) {
    if (base[i] == 1) continue;
    layout->units.Push(unit);
    unit *= base[i];
  }
  for (int i = 0, j = layout->units.size() - 1; i < j; ++i, --j) {
    std::swap(layout->units[i], layout->units[j]);
  }
  layout->nested = CollectAxes(view, layout) && IsNested(layout->axes);
  if (!layout->nested) return {};
  for (const Axis& axis : layout->axes) {
    auto& merged = layout->merged;
    if (!merged.empty() && merged.back().stride == axis.size * axis.stride) {
      merged.back() = {merged.back().size * axis.size, axis.stride, -1};
    } else {
      merged.Push(axis);
    }
  }
  for (const Axis& axis : layout->merged) SplitAtUnits(axis, layout->units, &layout->split);
  return {};
}

void MixedRadix::Push(int64_t unit, int64_t size, int64_t step) {
  digits_.Push({unit, Div(low_, unit), size, step});
  low_ = unit;
}

// Digits that no axis lies in, for the units below low_.
void MixedRadix::PushUnits(DimsView units, int64_t multiple_of) {
  for (int64_t unit : units) {
    if (unit < multiple_of) break;
    if (unit < low_ && Mod(low_, unit) == 0 && Mod(unit, multiple_of) == 0) Push(unit, 1, 1);
  }
}

bool MixedRadix::Factor(std::span<const Axis> axes, DimsView units, int64_t numel) {
  digits_.Clear();
  low_ = numel;
  int64_t inner = 0;
  for (const Axis& axis : axes) inner += axis.reach();
  for (const Axis& axis : axes) {
    inner -= axis.reach();
    if (!Place(axis, inner, units)) return false;
  }
  PushUnits(units, 1);
  if (low_ != 1) Push(1, 1, 1);
  return true;
}

// Puts the axis into a digit under the smallest natural unit that its reach leaves room for, or
// else under a larger one; low_ is the largest. `inner` is the summed reach of the axes still to
// come.
bool MixedRadix::Place(const Axis& axis, int64_t inner, DimsView units) {
  const int64_t room = axis.reach() + inner;
  size_t end = 0;
  while (end < units.size() && units[end] > room) ++end;
  for (size_t i = end + 1; i-- > 0;) {
    const int64_t above = i > 0 ? units[i - 1] : low_;
    if (i > 0 && (above >= low_ || Mod(low_, above) != 0)) continue;
    const int64_t unit = UnitFor(axis, above, inner, units);
    if (unit == 0) continue;
    PushUnits(units.first(i), above);
    Push(unit, axis.size, Div(axis.stride, unit));
    return true;
  }
  return false;
}

// The unit for an axis in the digit under `above`: its stride if that divides (no step is needed),
// else a natural unit, else what divides both. It must hold the inner axes below it. 0 if none
// does. A divisor of the stride and of `above` leaves room for the axis: its reach is a multiple,
// too.
int64_t MixedRadix::UnitFor(const Axis& axis, int64_t above, int64_t inner, DimsView units) const {
  if (axis.stride <= inner || axis.reach() + inner >= above) return 0;
  if (Mod(above, axis.stride) == 0) return axis.stride;
  for (int64_t unit : units) {
    if (unit >= axis.stride) continue;
    if (unit <= inner) break;
    if (Mod(axis.stride, unit) == 0 && Mod(above, unit) == 0) return unit;
  }
  const int64_t unit = std::gcd(axis.stride, above);
  return unit > inner ? unit : 0;
}

bool MixedRadix::StartsButLast(int64_t offset, Stack<int64_t>* starts) const {
  starts->Clear();
  for (int i = 0; i < digits_.size(); ++i) {
    const Digit& digit = digits_[i];
    const int64_t start = Div(offset, digit.unit);
    offset -= start * digit.unit;
    if (i + 1 < digits_.size() && start + digit.extent() > digit.radix) return false;
    starts->Push(start);
  }
  return true;
}

bool MixedRadix::Starts(int64_t offset, Stack<int64_t>* starts) const {
  if (!StartsButLast(offset, starts)) return false;
  if (digits_.empty()) return true;
  const Digit& last = digits_[digits_.size() - 1];
  return starts->back() + last.extent() <= last.radix;
}

int64_t MixedRadix::RoundUp(int64_t offset) const {
  int64_t value = 0;    // of the digits so far
  int64_t raised = -1;  // `value` with the last digit that can be raised, raised
  for (const Digit& digit : digits_) {
    const int64_t slack = digit.radix - digit.extent();
    const int64_t start = Div(offset, digit.unit);
    offset -= start * digit.unit;
    if (start > slack) return raised;
    if (start < slack) raised = value + (start + 1) * digit.unit;
    value += start * digit.unit;
  }
  return value;
}

}  // namespace tpu::shape::internal
