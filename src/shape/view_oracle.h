// For tests: random strided views, an interpreter of plans on plain arrays, and direct indexing to
// compare with. What it is not: fast, or part of the library.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "shape/view.h"

namespace tpu::shape::oracle {

struct Array {
  Dims dims;
  std::vector<int64_t> data;
};

inline std::string Describe(const View& view, DimsView base) {
  return "sizes " + ToString(view.sizes) + " strides " + ToString(view.strides) + " offset " +
         std::to_string(view.offset) + " base " + ToString(base);
}

// Calls f(index) for all indices of `dims` in row-major order.
template <class F>
void ForEachIndex(DimsView dims, F f) {
  if (NumElements(dims) == 0) return;
  Dims index(dims.size(), 0);
  while (true) {
    f(index);
    size_t d = dims.size();
    while (d > 0 && ++index[d - 1] == dims[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

inline int64_t Dot(const Dims& a, const Dims& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), int64_t{0});
}

// The addresses of the view's elements, in row-major order of its indices.
inline std::vector<int64_t> Addresses(const View& view) {
  std::vector<int64_t> out;
  ForEachIndex(view.sizes,
               [&](const Dims& i) { out.push_back(view.offset + Dot(i, view.strides)); });
  return out;
}

inline Array IotaArray(DimsView dims, int64_t from = 0) {
  Array a{Dims(dims.begin(), dims.end()), {}};
  a.data.resize(static_cast<size_t>(NumElements(dims)));
  std::iota(a.data.begin(), a.data.end(), from);
  return a;
}

// Result element [i] is operand element at start + sum i * strides (of the operand's linear
// memory).
inline Array Pick(const Array& a, const Dims& dims, const Dims& strides, int64_t start) {
  Array out{dims, {}};
  ForEachIndex(dims, [&](const Dims& i) {
    const int64_t at = start + Dot(i, strides);
    EXPECT_GE(at, 0);
    EXPECT_LT(at, static_cast<int64_t>(a.data.size()));
    out.data.push_back(a.data.at(static_cast<size_t>(at)));
  });
  return out;
}

inline Array ReshapeTo(Array a, const Dims& dims) {
  EXPECT_EQ(NumElements(dims), static_cast<int64_t>(a.data.size()));
  a.dims = dims;
  return a;
}

inline Array Transposed(const Array& a, const Dims& perm) {
  EXPECT_EQ(perm.size(), a.dims.size());
  const Dims strides = RowMajorStrides(a.dims);
  Dims dims, picked, sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, Iota(static_cast<int64_t>(perm.size())));
  for (int64_t p : perm) {
    dims.push_back(a.dims[static_cast<size_t>(p)]);
    picked.push_back(strides[static_cast<size_t>(p)]);
  }
  return Pick(a, dims, picked, 0);
}

inline int64_t Ravel(const Dims& index, const Dims& dims) {
  int64_t linear = 0;
  for (size_t i = 0; i < dims.size(); ++i) linear = linear * dims[i] + index[i];
  return linear;
}

inline Dims Unravel(int64_t linear, const Dims& dims) {
  Dims index(dims.size());
  for (size_t i = dims.size(); i-- > 0; linear /= dims[i]) index[i] = linear % dims[i];
  return index;
}

// Follows one element of the plan's result back to its place in the base: for bases too large to
// fill.
class Tracer {
 public:
  Tracer(const Dims& base, const ReadPlan& plan) : plan_(plan), shapes_{base} {
    for (const ReadStep& step : plan.steps) {
      std::visit([this](const auto& s) { Forward(s); }, step);
    }
  }

  int64_t Address(const Dims& index) {
    int64_t linear = Ravel(index, shapes_.back());
    next_start_ = plan_.starts.size();
    for (size_t i = plan_.steps.size(); i-- > 0;) {
      const Dims& in = shapes_[i];
      const Dims at = Unravel(linear, shapes_[i + 1]);
      linear = std::visit([&](const auto& s) { return Back(s, at, in, linear); }, plan_.steps[i]);
    }
    EXPECT_EQ(next_start_, 0u);
    return linear;
  }

 private:
  void Forward(const ReshapeStep& s) {
    EXPECT_EQ(NumElements(s.dims), NumElements(shapes_.back()));
    shapes_.push_back(s.dims);
  }
  void Forward(const TransposeStep& s) {
    Dims dims;
    for (int64_t p : s.perm) dims.push_back(shapes_.back().at(static_cast<size_t>(p)));
    shapes_.push_back(dims);
  }
  void Forward(const SliceStep& s) { shapes_.push_back(s.sizes); }
  void Forward(const BroadcastStep& s) { shapes_.push_back(s.dims); }
  void Forward(const GatherStep& s) { shapes_.push_back(s.sizes); }

  int64_t Back(const ReshapeStep&, const Dims&, const Dims&, int64_t linear) { return linear; }
  int64_t Back(const TransposeStep& s, const Dims& at, const Dims& in, int64_t) {
    Dims index(in.size());
    for (size_t i = 0; i < at.size(); ++i) index[static_cast<size_t>(s.perm[i])] = at[i];
    return Ravel(index, in);
  }
  int64_t Back(const SliceStep& s, const Dims& at, const Dims& in, int64_t) {
    Dims index(in.size());
    for (size_t d = in.size(); d-- > 0;) {
      const int64_t start = s.dynamic[d] ? plan_.starts.at(--next_start_) : 0;
      EXPECT_GE(start, 0);
      EXPECT_LT(start + (s.sizes[d] - 1) * s.steps[d], in[d]);
      index[d] = start + at[d] * s.steps[d];
    }
    return Ravel(index, in);
  }
  int64_t Back(const BroadcastStep& s, const Dims& at, const Dims& in, int64_t) {
    Dims index;
    for (size_t i = 0; i < in.size(); ++i) {
      index.push_back(in[i] == 1 ? 0 : at.at(static_cast<size_t>(s.mapping[i])));
    }
    return Ravel(index, in);
  }
  int64_t Back(const GatherStep& s, const Dims& at, const Dims&, int64_t) {
    return plan_.starts.at(--next_start_) + Dot(at, s.strides);
  }

  const ReadPlan& plan_;
  std::vector<Dims> shapes_;
  size_t next_start_ = 0;
};

// Runs the steps, and checks that none of them does nothing or could be part of the one before.
class Interpreter {
 public:
  Interpreter(Array base, const ReadPlan& plan) : value_(std::move(base)), plan_(plan) {}

  Array Run() {
    const ReadStep* before = nullptr;
    for (const ReadStep& step : plan_.steps) {
      EXPECT_TRUE(before == nullptr || before->index() != step.index());
      std::visit([this](const auto& s) { Apply(s); }, step);
      before = &step;
    }
    EXPECT_EQ(next_start_, plan_.starts.size());
    return value_;
  }

 private:
  void Apply(const ReshapeStep& s) {
    EXPECT_NE(value_.dims, s.dims) << "a reshape that does nothing";
    value_ = ReshapeTo(std::move(value_), s.dims);
  }
  void Apply(const TransposeStep& s) {
    EXPECT_FALSE(std::is_sorted(s.perm.begin(), s.perm.end())) << "a transpose that does nothing";
    value_ = Transposed(value_, s.perm);
  }
  void Apply(const SliceStep& s) {
    EXPECT_NE(value_.dims, s.sizes) << "a slice that does nothing";
    ASSERT_EQ(s.sizes.size(), value_.dims.size());
    ASSERT_EQ(s.steps.size(), value_.dims.size());
    ASSERT_EQ(s.dynamic.size(), value_.dims.size());
    Dims strides = RowMajorStrides(value_.dims);
    const bool empty = NumElements(s.sizes) == 0;  // then all starts are 0
    int64_t start = 0;
    for (size_t d = 0; d < s.sizes.size(); ++d) {
      const int64_t extent = s.sizes[d] == 0 ? 0 : (s.sizes[d] - 1) * s.steps[d] + 1;
      EXPECT_EQ(s.dynamic[d], s.sizes[d] > 0 && !empty && extent < value_.dims[d]);
      const int64_t at = s.dynamic[d] ? NextStart() : 0;
      EXPECT_GE(at, 0);
      EXPECT_LE(at + extent, value_.dims[d]);
      start += at * strides[d];
      strides[d] *= s.steps[d];
    }
    value_ = Pick(value_, s.sizes, strides, start);
  }
  void Apply(const BroadcastStep& s) {
    ASSERT_EQ(s.mapping.size(), value_.dims.size());
    EXPECT_NE(value_.dims, s.dims) << "a broadcast that does nothing";
    const Dims strides = RowMajorStrides(value_.dims);
    Dims picked(s.dims.size(), 0);
    for (size_t i = 0; i < s.mapping.size(); ++i) {
      const auto d = static_cast<size_t>(s.mapping[i]);
      ASSERT_LT(d, s.dims.size());
      EXPECT_TRUE(i == 0 || s.mapping[i - 1] < s.mapping[i]);
      if (value_.dims[i] == 1) continue;
      EXPECT_EQ(value_.dims[i], s.dims[d]);
      picked[d] = strides[i];
    }
    value_ = Pick(value_, s.dims, picked, 0);
  }
  void Apply(const GatherStep& s) {
    ASSERT_EQ(value_.dims.size(), 1u);
    value_ = Pick(value_, s.sizes, s.strides, NextStart());
  }
  int64_t NextStart() {
    EXPECT_LT(next_start_, plan_.starts.size());
    return plan_.starts.at(next_start_++);
  }

  Array value_;
  const ReadPlan& plan_;
  size_t next_start_ = 0;
};

// What the base holds after `value` was written by the plan.
inline Array Write(const Array& base, const Array& value, const WritePlan& plan) {
  using Kind = WritePlan::Kind;
  if (plan.kind == Kind::kNothing) return base;
  const Array update = ReshapeTo(Transposed(value, plan.value_perm), plan.update_dims);
  if (plan.kind == Kind::kFull) return ReshapeTo(update, base.dims);
  Array target = ReshapeTo(base, plan.base_dims);
  Dims strides = RowMajorStrides(target.dims);
  int64_t start = 0;
  if (plan.kind == Kind::kScatter) {
    EXPECT_EQ(target.dims.size(), 1u);
    strides = plan.scatter_strides;
    start = plan.starts.at(0);
  } else {
    EXPECT_EQ(plan.dynamic.size(), target.dims.size());
    EXPECT_EQ(plan.steps.size(), plan.kind == Kind::kMasked ? target.dims.size() : 0u);
    size_t next = 0;
    for (size_t d = 0; d < target.dims.size(); ++d) {
      const int64_t step = plan.kind == Kind::kMasked ? plan.steps[d] : 1;
      const int64_t extent = (update.dims[d] - 1) * step + 1;
      EXPECT_EQ(plan.dynamic[d], extent < target.dims[d]);
      const int64_t at = plan.dynamic[d] ? plan.starts.at(next++) : 0;
      EXPECT_LE(at + extent, target.dims[d]);
      start += at * strides[d];
      strides[d] *= step;
    }
    EXPECT_EQ(next, plan.starts.size());
  }
  size_t next = 0;
  ForEachIndex(update.dims, [&](const Dims& i) {
    target.data.at(static_cast<size_t>(start + Dot(i, strides))) = update.data[next++];
  });
  return ReshapeTo(target, base.dims);
}

// Random views of a random base, made as users make them or from nothing.
class Generator {
 public:
  explicit Generator(uint64_t seed) : rng_(seed) {}

  int64_t Int(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(rng_);
  }
  bool Chance(double p) { return std::bernoulli_distribution(p)(rng_); }

  Dims Shape(int64_t max_rank, int64_t max_numel) {
    static constexpr int64_t kSizes[] = {1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 10, 12};
    Dims dims;
    int64_t numel = 1;
    for (int64_t rank = Int(0, max_rank); rank > 0; --rank) {
      int64_t size = kSizes[Int(0, 13)];
      if (numel * size > max_numel) size = 1;
      numel *= size;
      dims.push_back(size);
    }
    if (Chance(0.02) && !dims.empty()) dims[static_cast<size_t>(Int(0, dims.size() - 1))] = 0;
    return dims;
  }

  // A shape of up to 2^61 elements, to count with and never to fill.
  Dims LargeShape() {
    static constexpr int64_t kSizes[] = {1, 2, 3, 7, 60, 64, 127, 1000, 4096, 100003, 1 << 24};
    Dims dims;
    int64_t numel = 1;
    for (int64_t rank = Int(1, 5); rank > 0; --rank) {
      const int64_t size = kSizes[Int(0, 10)];
      if (numel > (int64_t{1} << 61) / size) continue;
      numel *= size;
      dims.push_back(size);
    }
    return dims;
  }

  Dims Index(const Dims& dims) {
    Dims index;
    for (int64_t d : dims) index.push_back(Int(0, d - 1));
    return index;
  }

  // Another shape with as many elements.
  Dims Refactored(const Dims& dims) {
    int64_t numel = NumElements(dims);
    if (numel == 0) return dims;
    Dims out;
    while (numel > 1 && !Chance(0.3)) {
      int64_t f = Int(2, 8);
      if (numel % f != 0) f = 1;
      out.push_back(f);
      numel /= f;
    }
    if (numel > 1 || Chance(0.2)) out.push_back(numel);
    std::shuffle(out.begin(), out.end(), rng_);
    return out;
  }

  // A chain of `length` view operations on a contiguous tensor of shape `dims`.
  View Chain(const Dims& dims, int length) {
    View v{dims, RowMajorStrides(dims), 0};
    for (int i = 0; i < length; ++i) Step(&v);
    return v;
  }

  View Strided(int64_t numel) {
    View v;
    for (int64_t rank = Int(0, 4); rank > 0; --rank) {
      v.sizes.push_back(Int(1, 4));
      v.strides.push_back(Int(0, Chance(0.5) ? 4 : 24));
    }
    v.offset = Int(0, std::min<int64_t>(5, numel - 1));
    while (!v.sizes.empty() && LastAddress(v) >= numel) {
      v.sizes.pop_back();
      v.strides.pop_back();
      v.offset = 0;
    }
    return v;
  }

  static int64_t LastAddress(const View& v) {
    int64_t last = v.offset;
    for (size_t d = 0; d < v.sizes.size(); ++d) last += (v.sizes[d] - 1) * v.strides[d];
    return last;
  }

 private:
  void Step(View* v) {
    const auto rank = static_cast<int64_t>(v->sizes.size());
    if (rank == 0 || Chance(0.08)) return Unsqueeze(v, Int(0, rank));
    const auto d = static_cast<size_t>(Int(0, rank - 1));
    int64_t& size = v->sizes[d];
    int64_t& stride = v->strides[d];
    switch (Int(0, 8)) {
      case 0:
      case 1: {  // transpose
        const auto e = static_cast<size_t>(Int(0, rank - 1));
        std::swap(v->sizes[d], v->sizes[e]);
        std::swap(v->strides[d], v->strides[e]);
        return;
      }
      case 2: {  // x[start:stop:step]
        if (size == 0) return;
        const int64_t start = Int(0, size - 1), stop = Int(start + 1, size), step = Int(1, 3);
        v->offset += start * stride;
        size = (stop - start + step - 1) / step;
        stride *= step;
        return;
      }
      case 3:  // x[::step]
        if (size > 2) {
          const int64_t step = Int(2, 3), start = Int(0, step - 1);
          v->offset += start * stride;
          size = (size - start + step - 1) / step;
          stride *= step;
        }
        return;
      case 4:  // select
        if (size == 0 || Chance(0.5)) return;
        v->offset += Int(0, size - 1) * stride;
        return Erase(v, d);
      case 5:  // expand or squeeze
        if (size != 1) return;
        if (Chance(0.3)) return Erase(v, d);
        size = Int(1, 3);
        stride = size == 1 ? Int(0, 7) : 0;
        return;
      case 6: {  // unfold
        if (size == 0 || rank > 5 || Chance(0.5)) return;
        const int64_t window = Int(1, size), step = Int(1, 3), element = stride;
        size = (size - window) / step + 1;
        stride *= step;
        v->sizes.push_back(window);
        v->strides.push_back(element);
        return;
      }
      case 7: {  // diagonal
        const auto e = static_cast<size_t>(Int(0, rank - 1));
        if (d == e || size == 0 || v->sizes[e] == 0) return;
        const int64_t length = std::min(size, v->sizes[e]), diagonal = stride + v->strides[e];
        v->sizes.push_back(length);
        v->strides.push_back(diagonal);
        Erase(v, std::max(d, e));
        return Erase(v, std::min(d, e));
      }
      default:  // view: split a dimension
        for (int64_t f : {2, 3, 4, 5}) {
          if (size == 0 || size % f != 0 || rank > 5 || Chance(0.4)) continue;
          const auto at = static_cast<std::ptrdiff_t>(d);
          v->sizes[d] /= f;
          v->sizes.insert(v->sizes.begin() + at + 1, f);
          v->strides.insert(v->strides.begin() + at, v->strides[d] * f);
          return;
        }
    }
  }
  static void Unsqueeze(View* v, int64_t d) {
    v->sizes.insert(v->sizes.begin() + d, 1);
    v->strides.insert(v->strides.begin() + d, 1);
  }
  static void Erase(View* v, size_t d) {
    v->sizes.erase(v->sizes.begin() + static_cast<std::ptrdiff_t>(d));
    v->strides.erase(v->strides.begin() + static_cast<std::ptrdiff_t>(d));
  }

  std::mt19937_64 rng_;
};

}  // namespace tpu::shape::oracle
