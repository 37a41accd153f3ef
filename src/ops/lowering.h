// Lowering: what a row's lowering function sees. Arguments come by their schema names; operands are
// values of the program being built; numbers that change from call to call are run-time values too.
// What it is not: torch. The same lowering runs in every executor.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "hlo/hlo.h"
#include "ops/op_def.h"

namespace tpu::ops {

class Lowering {
 public:
  virtual ~Lowering() = default;

  // --- Operands. A tensor comes dense, with its sizes (pointwise kinds: broadcast to the common,
  // coalesced shape and converted to the compute type). Zero-dim CPU tensors and Python numbers in
  // a tensor's place come as run-time scalars.
  hlo::Value Tensor(std::string_view name) { return TensorAs(name, DType::kInvalid); }
  virtual hlo::Value TensorAs(std::string_view name, DType dtype) = 0;  // kInvalid: its own
  virtual bool Has(std::string_view name) const = 0;                    // false: None
  virtual DType TensorType(std::string_view name) const = 0;            // without reading it
  virtual Dims TensorDims(std::string_view name) const = 0;
  // A tensor list; None entries of a Tensor?[] come as invalid values.
  virtual hlo::Values Tensors(std::string_view name) = 0;
  virtual size_t NumTensors(std::string_view name) const = 0;
  // The tensors of the call in order, for pointwise rows that don't care for names.
  virtual hlo::Values Operands() = 0;
  // True if the tensor lies in memory in channels_last order (its own strides say so).
  virtual bool ChannelsLast(std::string_view name) const = 0;
  // True if it lies in row-major order without gaps: some results (LU of the tensor or of its
  // transpose) depend on it.
  virtual bool Contiguous(std::string_view name) const = 0;

  // --- Static arguments: parts of the key.
  virtual int64_t Int(std::string_view name) const = 0;
  virtual bool Bool(std::string_view name) const = 0;
  virtual Dims Ints(std::string_view name) const = 0;                   // int[], bool[] as 0/1
  virtual std::vector<double> Floats(std::string_view name) const = 0;  // float[]
  virtual std::string_view String(std::string_view name) const = 0;
  virtual std::optional<DType> Type(std::string_view name) const = 0;  // ScalarType?
  // A number named in the row's `statics`.
  virtual double StaticNumber(std::string_view name) const = 0;
  std::optional<int64_t> OptInt(std::string_view name) const {
    return Has(name) ? std::optional(Int(name)) : std::nullopt;
  }
  bool BoolOr(std::string_view name, bool otherwise) const {
    return Has(name) ? Bool(name) : otherwise;
  }

  // --- Run-time numbers, converted on the host to `dtype`: a scalar value.
  virtual hlo::Value Number(std::string_view name, DType dtype) = 0;
  // Whether the number is a bool, an integer, a float or complex (part of the key): its PyTorch
  // type, kBool, kI64, kF64 or kC128. kInvalid: None.
  virtual DType NumberType(std::string_view name) const = 0;

  // --- Types.
  // Pointwise: the promoted type of the operands, before the half types' detour over float32.
  virtual DType Promoted() const = 0;
  // Pointwise: the type operands were converted to.
  virtual DType ComputeType() const = 0;
  // Result i as PyTorch's meta kernel gives it; null where no meta kernel was asked.
  virtual const hlo::Type* Expected(size_t i) const = 0;

  // --- Random numbers: for each of `n` elements two fresh 32-bit words, the same on every plugin.
  // Draws of one call with different `draw` numbers are independent.
  struct Bits {
    hlo::Value low, high;  // ui32[n] each
  };
  virtual Bits RandomBits(int64_t n, int draw = 0) = 0;

  // --- Index checks. Returns `index` with negative entries wrapped (if `wrap`), as it came
  // otherwise, and arranges that an entry outside [-bound, bound) (or [0, bound)) raises IndexError
  // at the next synchronisation. `argument` and `dim` name it in the message. Entries where
  // `ignore` (i1, same shape; may be invalid) holds are not checked.
  virtual hlo::Value CheckIndex(hlo::Value index, int64_t bound, std::string_view argument,
                                int64_t dim, bool wrap = true, hlo::Value ignore = {}) = 0;

  // Arranges that RuntimeError is raised at the next synchronisation if `bad` (i1) holds anywhere:
  // `rule` in PyTorch's words, `argument`, the first such element and its `value` (same shape).
  virtual void CheckValue(hlo::Value bad, hlo::Value value, std::string_view argument,
                          std::string_view rule) = 0;

  hlo::Function& fn() { return *fn_; }
  hlo::Value Fail(Status status) { return fn_->Fail(std::move(status)); }

 protected:
  explicit Lowering(hlo::Function* fn) : fn_(fn) {}
  hlo::Function* fn_;
};

}  // namespace tpu::ops
