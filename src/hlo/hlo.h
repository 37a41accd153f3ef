// A typed StableHLO builder: shapes are inferred and checked as ops are added, and plain text comes
// out. No MLIR, no protobuf.
// What it is not: an optimiser. It writes what it is told; XLA does the rest.
//
// Errors stick: the first wrong op records a Status in its function and gives an invalid Value;
// everything computed from one is invalid and free of further errors. So lowerings read as formulas
// and check once, at the end.
#pragma once

#include <complex>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "shape/dims.h"
#include "shape/dtype.h"

namespace tpu::hlo {

struct Type {
  DType dtype = DType::kInvalid;
  Dims dims;
  friend bool operator==(const Type&, const Type&) = default;
};
std::string ToMlir(const Type& type);    // "tensor<2x3xf32>"
std::string ToString(const Type& type);  // "float32[2, 3]"

class Function;

// A handle on one SSA value. Cheap to copy; valid as long as its Function.
class Value {
 public:
  Value() = default;
  bool valid() const { return fn_ != nullptr; }
  // Of an invalid value: a function that has failed, so that formulas go on until somebody looks.
  Function* function() const { return fn_ != nullptr ? fn_ : Failed(); }
  int id() const { return id_; }
  const Type& type() const;
  DType dtype() const { return type().dtype; }
  const Dims& dims() const { return type().dims; }
  int64_t rank() const { return static_cast<int64_t>(dims().size()); }
  // 1 where there is no such dimension: an invalid value has none, and formulas may ask before they
  // check.
  int64_t dim(int64_t i) const { return i >= 0 && i < rank() ? dims()[static_cast<size_t>(i)] : 1; }
  int64_t numel() const { return NumElements(dims()); }

 private:
  friend class Function;
  static Function* Failed();
  Value(Function* fn, int id) : fn_(fn), id_(id) {}
  Function* fn_ = nullptr;
  int id_ = -1;
};
using Values = std::vector<Value>;

enum class UnaryOp : uint8_t {
  kAbs,
  kCbrt,
  kCeil,
  kCosine,
  kExp,
  kExpm1,
  kFloor,
  kImag,
  kIsFinite,
  kLog,
  kLog1p,
  kLogistic,
  kNegate,
  kNot,
  kPopcnt,
  kClz,
  kReal,
  kRoundNearestAfz,
  kRoundNearestEven,
  kRsqrt,
  kSign,
  kSine,
  kSqrt,
  kTan,
  kTanh,
  // chlo
  kAcos,
  kAcosh,
  kAsin,
  kAsinh,
  kAtan,
  kAtanh,
  kCosh,
  kSinh,
  kErf,
  kErfc,
  kErfInv,
  kLgamma,
  kDigamma,
  kBesselI1e,
};
enum class BinaryOp : uint8_t {
  kAdd,
  kAnd,
  kAtan2,
  kComplex,
  kDivide,
  kMaximum,
  kMinimum,
  kMultiply,
  kOr,
  kPower,
  kRemainder,
  kShiftLeft,
  kShiftRightArithmetic,
  kShiftRightLogical,
  kSubtract,
  kXor,
  // chlo
  kNextAfter,
  kPolygamma,
  kZeta,
};
enum class CompareOp : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };
enum class Monoid : uint8_t { kAdd, kMul, kMax, kMin, kAnd, kOr };

// A number that becomes a constant of any dtype.
using Number = std::variant<bool, int64_t, uint64_t, double, std::complex<double>>;

struct Window {  // one spatial dimension of a convolution or reduce_window
  int64_t size = 1, stride = 1, pad_low = 0, pad_high = 0;
  int64_t base_dilation = 1, window_dilation = 1;
  bool reversed = false;  // convolutions only: the kernel is read from its end
};

// How exact products of float32 and wider are on a TPU's matrix unit: kDefault rounds operands to
// bfloat16, kHigh takes three passes, kHighest six. Without effect on CPUs and on half types.
enum class Precision : uint8_t { kDefault, kHigh, kHighest };

struct ConvDims {  // which operand dimension plays which part
  int64_t input_batch, input_feature, kernel_input, kernel_output, output_batch, output_feature;
  Dims input_spatial, kernel_spatial, output_spatial;
};

struct GatherDims {
  Dims offset_dims = {}, collapsed_slice_dims = {}, operand_batching_dims = {},
       start_indices_batching_dims = {}, start_index_map = {};
  int64_t index_vector_dim = 0;
};
struct ScatterDims {
  Dims update_window_dims = {}, inserted_window_dims = {}, input_batching_dims = {},
       scatter_indices_batching_dims = {}, scatter_dims_to_operand_dims = {};
  int64_t index_vector_dim = 0;
};

// Region bodies get the region's arguments and return its results.
using Body = std::function<Values(Function&, const Values&)>;

class Function {
 public:
  Function();
  ~Function();
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;

  const Status& status() const;
  // Records the first error. Returns an invalid Value, so that `return fn.Fail(...)` reads well.
  Value Fail(Status status);

  // The device has no 64-bit arithmetic: from here on, division and contractions of 64-bit integers
  // (and contractions of 32-bit ones) are written in narrower pieces, with equal results. TPU
  // compilers take minutes over the former and refuse the latter. float64 they emulate as pairs of
  // float32: its range is float32's.
  void Emulate64Bit();
  bool emulates_64bit() const;

  // --- Parameters and constants. `attributes` as in "tf.aliasing_output = 0 : i32".
  Value Parameter(const Type& type, std::string attributes = "");
  // Sets the attributes of a parameter made before (aliasing is known only at the end).
  void SetParameterAttributes(Value parameter, std::string attributes);
  Value Constant(const Type& type, Number splat);
  Value Scalar(DType dtype, Number value) { return Constant({dtype, {}}, value); }
  Value ConstantI64(std::span<const int64_t> values, const Type& type);  // dense list
  Value Iota(const Type& type, int64_t dim);

  // --- Elementwise. Operands have equal types; no broadcasting here.
  Value Unary(UnaryOp op, Value a);
  Value Binary(BinaryOp op, Value a, Value b);
  Value Compare(CompareOp op, Value a, Value b);            // i1
  Value CompareTotal(CompareOp op, Value a, Value b);       // TOTALORDER, floats only
  Value Select(Value pred, Value on_true, Value on_false);  // pred: i1, same shape or scalar
  Value Clamp(Value low, Value a, Value high);
  Value Convert(Value a, DType dtype);  // StableHLO's convert (float -> int: see ops/cast.h)
  // Refuses complex <-> real and i1: XLA aborts on them. Widths as in StableHLO: a wider result
  // drops, a narrower one adds a last dimension.
  Value BitcastConvert(Value a, DType dtype);

  // --- Shape.
  Value Reshape(Value a, DimsView dims);
  Value Transpose(Value a, DimsView perm);
  Value BroadcastInDim(Value a, DimsView dims, DimsView mapping);
  Value BroadcastTo(Value a, DimsView dims);  // NumPy rules
  Value Slice(Value a, DimsView starts, DimsView limits, DimsView strides);
  Value DynamicSlice(Value a, const Values& starts, DimsView sizes);  // starts: scalars, one dtype
  Value DynamicUpdateSlice(Value a, Value update, const Values& starts);
  Value Pad(Value a, Value value, DimsView low, DimsView high, DimsView interior);
  Value Concatenate(const Values& values, int64_t dim);
  Value Reverse(Value a, DimsView dims);

  // --- Reductions and windows. `dims` are removed.
  Value Reduce(Value a, Monoid monoid,
               DimsView dims);  // identity chosen by dtype; max/min keep NaN
  Values Reduce(const Values& operands, const Values& inits, DimsView dims, const Body& body);
  Values ReduceWindow(const Values& operands, const Values& inits, std::span<const Window> windows,
                      const Body& body);  // one Window for each operand dimension
  Value ReduceWindow(Value a, Monoid monoid, std::span<const Window> windows);
  Value SelectAndScatter(Value a, Value source, Value init, std::span<const Window> windows,
                         const Body& select, const Body& scatter);

  // --- Contractions. `dtype` is the result's element type (accumulation), kInvalid = operand's.
  Value DotGeneral(Value a, Value b, DimsView a_batch, DimsView b_batch, DimsView a_contract,
                   DimsView b_contract, DType dtype = DType::kInvalid,
                   Precision precision = Precision::kHighest);
  // windows: one for each spatial dimension, in the order of the lists in `dims`; Window::size is
  // the kernel's and need not be set.
  Value Convolution(Value input, Value kernel, const ConvDims& dims,
                    std::span<const Window> windows, int64_t feature_groups = 1,
                    int64_t batch_groups = 1, DType dtype = DType::kInvalid,
                    Precision precision = Precision::kHighest);

  // --- Indexing.
  Value Gather(Value operand, Value indices, const GatherDims& dims, DimsView slice_sizes,
               bool sorted = false);
  Values Scatter(const Values& operands, Value indices, const Values& updates,
                 const ScatterDims& dims, const Body& body, bool unique = false,
                 bool sorted = false);
  Values Sort(const Values& operands, int64_t dim, bool stable, const Body& less);

  // --- Control flow. Bodies name what they use from outside directly.
  Values While(const Values& inits, const Body& condition, const Body& body);
  Values If(Value pred, const std::function<Values()>& then,
            const std::function<Values()>& otherwise);

  // --- The rest.
  Value Cholesky(Value a, bool lower);
  Value TriangularSolve(Value a, Value b, bool left, bool lower, bool unit_diagonal,
                        bool transpose_a);
  Value Fft(Value a, std::string_view kind /* FFT IFFT RFFT IRFFT */, DimsView length);
  Values TopK(Value a, int64_t k);  // chlo: last dimension; values and i32 indices
  // `api_version` 1 or 2: backend_config is an opaque string. 4 (XLA's typed FFI): the text of an
  // MLIR dictionary, "{alpha = 1.0 : f32}".
  Values CustomCall(std::string_view target, const Values& operands, std::span<const Type> results,
                    std::string_view backend_config = "", bool has_side_effect = false,
                    int api_version = 1);
  Values OptimizationBarrier(const Values& values);

  // The module's text: one function @main of the parameters so far and these results.
  Result<std::string> Finish(const Values& results, std::string_view name = "main");

  // The number of ops written so far.
  int64_t num_ops() const;

 private:
  Value WideDivide(BinaryOp op, Value a, Value b);
  Value WideDot(Value a, Value b, DimsView a_batch, DimsView b_batch, DimsView a_contract,
                DimsView b_contract, const Type& result);
  Value WideConvolution(Value input, Value kernel, const ConvDims& dims,
                        std::span<const Window> windows, int64_t feature_groups,
                        const Type& result);

  friend class Value;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// --- Formulas. NumPy broadcasting between equal dtypes; a C++ number takes the other's dtype.
Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator/(Value a, Value b);
Value operator-(Value a);
Value operator+(Value a, double b);
Value operator-(Value a, double b);
Value operator*(Value a, double b);
Value operator/(Value a, double b);
Value operator+(double a, Value b);
Value operator-(double a, Value b);
Value operator*(double a, Value b);
Value operator/(double a, Value b);
Value operator&(Value a, Value b);  // bitwise; logical on i1
Value operator|(Value a, Value b);
Value operator^(Value a, Value b);
Value operator~(Value a);
Value Eq(Value a, Value b);
Value Ne(Value a, Value b);
Value Lt(Value a, Value b);
Value Le(Value a, Value b);
Value Gt(Value a, Value b);
Value Ge(Value a, Value b);
Value Eq(Value a, double b);
Value Ne(Value a, double b);
Value Lt(Value a, double b);
Value Le(Value a, double b);
Value Gt(Value a, double b);
Value Ge(Value a, double b);
Value Select(Value pred, Value a, Value b);  // broadcasts all three
Value Max(Value a, Value b);                 // NaN from either side
Value Min(Value a, Value b);
Value Pow(Value a, Value b);
Value Abs(Value a);
Value Exp(Value a);
Value Log(Value a);
Value Log1p(Value a);
Value Expm1(Value a);
Value Sqrt(Value a);
Value Rsqrt(Value a);
Value Tanh(Value a);
Value Logistic(Value a);
Value Erf(Value a);
Value Floor(Value a);
Value Sign(Value a);
Value Convert(Value a, DType dtype);
Value Like(Value a, Number splat);  // a constant of a's type

// Dimension of size 1 put in at `dim` / taken out.
Value Unsqueeze(Value a, int64_t dim);
Value Squeeze(Value a, int64_t dim);
Value IsNan(Value a);  // i1

}  // namespace tpu::hlo
