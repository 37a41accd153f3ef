// OpDef: everything the project says about one functional ATen overload, as one row of a table.
// Eager, fused eager, torch.compile, the TorchScript compiler, debug checks, the coverage page and
// the generated tests all read these rows.
// What it is not: a dispatcher. In-place, out= and foreach forms are derived from schemas in
// torch/.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "hlo/hlo.h"

namespace tpu::ops {

class Lowering;

enum class Kind : uint8_t {
  // Pointwise kinds: operands broadcast; their programs see coalesced dimensions, so a lowering of
  // these kinds may not look at sizes.
  kUnary,
  kBinary,
  kCompare,
  kPointwise,
  kCopy,  // called by the front end's copies, not registered as an operator
  // The rest see the tensors' own sizes.
  kReduce,
  kView,
  kIndexing,
  kScatter,
  kSort,
  kMatmul,
  kConv,
  kPool,
  kNorm,
  kAttention,
  kLoss,
  kEmbedding,
  kRandom,
  kFactory,
  kOptim,
  kFft,
  kLinalg,
  kQuant,
  kRnn,
};
constexpr bool IsPointwise(Kind k) { return k <= Kind::kCopy; }
std::string_view KindName(Kind kind);

// How a pointwise row's operands become one compute type (half types then compute in float32).
enum class In : uint8_t {
  kPromote,  // torch.result_type of all tensor and number operands
  kToFloat,  // the same, integers become the default float type
  kSelf,     // each operand keeps its own type; the lowering converts
};
// The element type of the result, where PyTorch's meta kernel isn't asked (the core used alone);
// where it is, its answer wins and the result is converted to it.
enum class Out : uint8_t {
  kCompute,  // the promoted type
  kBool,
  kReal,       // abs, angle, real of complex
  kAsLowered,  // whatever the lowering returns
};

enum class StatusKind : uint8_t { kDone, kPartial, kRefused, kHost };

// Which meta kernel tells sizes, strides and dtypes of results on a miss.
enum class Meta : uint8_t {
  kOwn,    // the overload's own
  kInfer,  // none exists: contiguous tensors of the lowering's types
};

using LowerFn = hlo::Values (*)(Lowering&);

struct OpDef {
  std::string_view name;  // schema name: "aten::add.Tensor"
  Kind kind;
  LowerFn lower = nullptr;  // null for regular kinds, which have `op`
  int16_t op = -1;          // hlo::UnaryOp, BinaryOp or CompareOp of a regular row

  In in = In::kPromote;
  Out out = Out::kCompute;

  // Comma-separated names of number arguments (Scalar, float) whose values are part of the key.
  // All others are run-time. ints, bools, strings and dtypes are always part of the key.
  std::string_view statics = "";
  // Integer arguments that are run-time numbers all the same: "from,to". Read with
  // Lowering::Number.
  std::string_view dynamics = "";
  // Arguments written although the schema doesn't mark them (running statistics). The lowering
  // returns their new values after the results, in this order; after those come the schema's own
  // marked arguments. An invalid Value leaves an argument as it was.
  std::string_view mutates = "";
  // Which arguments index which dimension: "index:dim" or "indices:*". Read by debug checks, the
  // generated tests and the docs; the lowering itself calls Lowering::CheckIndex.
  std::string_view indexes = "";
  // List arguments are independent of each other: a call on n-element lists is n calls on
  // one-element lists (fused optimizers), which strict mode runs as one program.
  bool per_tensor = false;
  // Element by element into its arguments, whatever their shape: contiguous tensors of equal sizes
  // are handed over as one dimension, so that programs are shared by size.
  bool flattens = false;
  // PyTorch's check of the numbers (and run-time integers) of a call, in schema order, absent ones
  // left out; `self` is the type of the first tensor. Meta kernels are asked on a miss only, and
  // run-time numbers are no part of the key.
  using CheckNumbers = Status (*)(std::span<const double> numbers, DType self);
  CheckNumbers check = nullptr;
  // An argument that must not be 0 where the row computes in integers ("other"). A number is looked
  // at on the host, by every call; for a tensor the lowering calls Lowering::CheckValue.
  std::string_view divisor = "";
  // Draws random numbers: how many 64-bit counters a call advances by, as a multiple of numel of
  // the first result (or of `self`); 0 = none. See ops/random.cc.
  bool random = false;
  Meta meta = Meta::kOwn;
  // The operator whose meta kernel is asked instead of the row's own ("aten::convolution").
  std::string_view meta_name = "";

  StatusKind status = StatusKind::kDone;
  std::string_view note = "";  // partial, refused, host: why
};

// All rows of all families. Order is by family, then as written.
std::span<const OpDef* const> AllOps();
const OpDef* FindOp(std::string_view name);
// Names that more than one row claims; none, or the table is wrong.
std::span<const std::string_view> DuplicateRows();

// One function a family; the registry (registry.cc) names each once.
std::span<const OpDef> UnaryOps();
std::span<const OpDef> BinaryOps();
std::span<const OpDef> CompareOps();
std::span<const OpDef> ActivationOps();
std::span<const OpDef> ReduceOps();
std::span<const OpDef> ExtremumOps();
std::span<const OpDef> CountingOps();
std::span<const OpDef> SoftmaxOps();
std::span<const OpDef> ScanOps();
std::span<const OpDef> ViewOps();
std::span<const OpDef> PadOps();
std::span<const OpDef> IndexingOps();
std::span<const OpDef> ScatterOps();
std::span<const OpDef> SortOps();
std::span<const OpDef> MatmulOps();
std::span<const OpDef> ConvOps();
std::span<const OpDef> PoolOps();
std::span<const OpDef> AveragePoolOps();
std::span<const OpDef> NormOps();
std::span<const OpDef> AttentionOps();
std::span<const OpDef> LossOps();
std::span<const OpDef> ClassLossOps();
std::span<const OpDef> EmbeddingOps();
std::span<const OpDef> DistanceOps();
std::span<const OpDef> DropoutOps();
std::span<const OpDef> RandomOps();
std::span<const OpDef> RandomLoopOps();
std::span<const OpDef> SpecialOps();
std::span<const OpDef> FactoryOps();
std::span<const OpDef> CopyOps();
std::span<const OpDef> OptimOps();
std::span<const OpDef> RnnOps();
std::span<const OpDef> LinalgOps();
std::span<const OpDef> LuOps();
std::span<const OpDef> GroupedMatmulOps();
std::span<const OpDef> GridSampleOps();
std::span<const OpDef> FftOps();
std::span<const OpDef> UpsampleOps();

}  // namespace tpu::ops
