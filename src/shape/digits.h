// Linear memory as mixed-radix digits, and the dimensions of a strided view as runs on those
// digits: the arithmetic that Decompose and Invert share. Internal to src/shape. What it is not:
// plans. Nothing here knows of reshapes or slices.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "shape/dims.h"
#include "shape/view.h"

namespace tpu::shape::internal {

// Memory holds at most 2^62 elements, and a digit of radix 2 or more halves what is left, so
// neither digits nor the dimensions of a view without repetition can be more than this many.
inline constexpr int kMaxDigits = 64;
inline constexpr int64_t kMaxElements = int64_t{1} << 62;

// A list on the stack: the hot path allocates only what the plan itself holds.
template <class T>
class Stack {
 public:
  // False where it is full.
  bool Push(const T& value) {
    if (size_ == kMaxDigits) return false;
    items_[size_++] = value;
    return true;
  }
  void Clear() { size_ = 0; }
  void Pop() { --size_; }
  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](int i) { return items_[i]; }
  const T& operator[](int i) const { return items_[i]; }
  T& back() { return items_[size_ - 1]; }
  const T* begin() const { return items_; }
  const T* end() const { return items_ + size_; }
  std::span<const T> span() const { return {items_, static_cast<size_t>(size_)}; }

 private:
  int size_ = 0;
  T items_[kMaxDigits];  // left uninitialised on purpose
};

// A dimension of a view with more than one element and a stride above 0.
struct Axis {
  int64_t size;
  int64_t stride;
  int dim;  // of the view; meaningless for an axis that was merged or split

  int64_t reach() const { return (size - 1) * stride; }
};

// A digit counts units of `unit` elements, 0 <= digit < radix. The view takes `size` of its values,
// `step` apart: extent() from the first to the last.
struct Digit {
  int64_t unit;
  int64_t radix;
  int64_t size;
  int64_t step;

  int64_t extent() const { return (size - 1) * step + 1; }
  bool full() const { return size == radix; }
  // Whether the first value may differ between views of equal structure.
  bool dynamic() const { return extent() < radix; }
};

// Division is most of the arithmetic here, and 32-bit division is several times faster.
inline int64_t Div(int64_t a, int64_t b) {
  if (((a | b) >> 32) == 0) return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  return a / b;
}
inline int64_t Mod(int64_t a, int64_t b) {
  if (((a | b) >> 32) == 0) return static_cast<uint32_t>(a) % static_cast<uint32_t>(b);
  return a % b;
}

// The digits of memory of `numel` elements, the most significant first, in which a view's axes are
// runs of single digits.
class MixedRadix {
 public:
  // Chooses digits for `axes`, which must be nested (each stride exceeds the summed reach of those
  // after it). `units` are the natural units of the memory, decreasing and each a divisor of the
  // one before: as many of them as possible become digits. False where no such digits were found.
  bool Factor(std::span<const Axis> axes, DimsView units, int64_t numel);

  const Stack<Digit>& digits() const { return digits_; }
  // The digits of `offset` into `starts`. False where a run would carry into the next digit.
  bool Starts(int64_t offset, Stack<int64_t>* starts) const;
  // As Starts, but doesn't check the last digit.
  bool StartsButLast(int64_t offset, Stack<int64_t>* starts) const;
  // The smallest offset >= `offset` that Starts accepts; -1 if there is none.
  int64_t RoundUp(int64_t offset) const;

 private:
  bool Place(const Axis& axis, int64_t inner, DimsView units);
  int64_t UnitFor(const Axis& axis, int64_t above, int64_t inner, DimsView units) const;
  void Push(int64_t unit, int64_t size, int64_t step);
  void PushUnits(DimsView units, int64_t multiple_of);

  Stack<Digit> digits_;
  int64_t low_ = 1;  // the unit of the last digit
};

// What Decompose and Invert need to know of a view and its base.
struct Layout {
  int64_t numel = 0;      // of the base
  bool empty = false;     // the view has no elements; then nothing below is filled
  bool expanded = false;  // a dimension of size > 1 has stride 0
  bool nested = true;  // `axes` are nested, so the view without expanded dimensions repeats nothing
  bool in_order = true;  // `axes` keep the order of the view's dimensions
  Stack<int64_t> units;  // row-major strides of the base's dimensions of size > 1
  Stack<Axis> axes;      // by decreasing stride. Incomplete if there are too many; then !nested
  Stack<Axis> merged;    // axes, where adjacent ones that form one progression are one
  Stack<Axis> split;     // merged, split at those units that divide them

  bool was_split() const { return split.size() != merged.size(); }
};

// Fills `layout`; fails with invalid_argument for a view that leaves its base.
Status Analyze(const View& view, DimsView base, Layout* layout);

// The unit of flat memory.
inline constexpr int64_t kFlatUnits[] = {1};

}  // namespace tpu::shape::internal
