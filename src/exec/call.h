// Call: one operator call as plain data, with no torch types: what a front end fills in and every
// executor reads. Self-contained and copyable, so that fuse and record can keep it.
// What it is not: a key. BuildKey (exec/key.h) makes one of it.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op_def.h"
#include "runtime/device.h"
#include "runtime/storage.h"

namespace tpu::exec {

// One overload bound to a row: names of arguments, and what its form adds to the functional row.
struct Overload {
  const ops::OpDef* row = nullptr;
  std::string name;                    // of the overload called: "aten::add_.Tensor"
  std::vector<std::string> arg_names;  // in schema order
  std::vector<bool> arg_static;        // numbers whose value is part of the key
  int num_results = 1;                 // values the lowering returns as results
  // Where the lowering's values go, in order: an argument's position, or -1 for a new tensor.
  // A tensor-list argument takes as many values as it has elements.
  std::vector<int> targets;
  bool reads_targets = true;  // false for out= forms
  uint32_t id = 0;            // dense, for keys
  // Some program of its calls checks indices or values: errors will want the user's line.
  mutable bool checks = false;                   // through std::atomic_ref
  static Overload* Register(Overload overload);  // keeps it for the process; gives it its id
  static const Overload* ById(uint32_t id);
};

struct TensorArg {
  runtime::Storage* storage = nullptr;
  DType dtype = DType::kInvalid;
  bool conj = false, neg = false;
  bool covers = false;  // contiguous, offset 0, and exactly its storage's bytes: no view at all
  int16_t rank = 0;
  int32_t slot = -1;     // which distinct storage of the call (set by BuildKey)
  uint32_t dims_at = 0;  // in Call::ints: `rank` sizes, then `rank` strides
  int64_t offset = 0;
};

struct Number {
  enum class Kind : uint8_t { kBool, kInt, kUint, kFloat, kComplex };
  Kind kind = Kind::kFloat;
  union {
    bool b;
    int64_t i;
    uint64_t u;
    double d = 0;
  };
  double imag = 0;
  std::complex<double> AsComplex() const;
  double AsDouble() const;
  int64_t AsInt() const;
};

struct Arg {
  enum class Kind : uint8_t {
    kNone,
    kTensor,      // at: index into Call::tensors
    kTensors,     // at, count: a range of Call::tensors; absent entries have no storage
    kHostTensor,  // a zero-dim CPU tensor: `number`, `dtype`; wrapped if it was a Python number
    kNumber,      // Scalar or float
    kInt,         // int, bool
    kInts,        // at, count: a range of Call::ints
    kType,        // ScalarType
    kString,      // at: index into Call::strings
  };
  Kind kind = Kind::kNone;
  DType dtype = DType::kInvalid;
  bool wrapped = false;
  bool is_default = false;  // kNumber: left at its schema's default, which is part of the key
  uint32_t at = 0, count = 0;
  int64_t i = 0;
  Number number;
};

struct Call {
  const Overload* overload = nullptr;
  runtime::Device* device = nullptr;
  std::vector<Arg> args;
  std::vector<TensorArg> tensors;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  DType default_dtype = DType::kF32;
  // Random rows: seed and offset drawn from the generator for this call.
  uint64_t seed = 0, seed_offset = 0;
  std::string location;  // the user's line; only known on a miss

  void Clear();
  DimsView Sizes(const TensorArg& t) const { return {ints.data() + t.dims_at, size_t(t.rank)}; }
  DimsView Strides(const TensorArg& t) const {
    return {ints.data() + t.dims_at + t.rank, size_t(t.rank)};
  }
  // "float32[2, 3], int64[3]": for errors.
  std::string Describe() const;
};

// Numbers that take part in type promotion, by PyTorch's naming.
constexpr bool Promotes(std::string_view name) {
  return name == "other" || name == "exponent" || name == "self" || name == "min" || name == "max";
}

}  // namespace tpu::exec
