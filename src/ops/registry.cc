// The table of all rows: every family once.
#include <string>
#include <unordered_map>
#include <vector>

#include "ops/families.h"
#include "ops/host.h"
#include "ops/op_def.h"

namespace tpu::ops {
namespace {

constexpr std::span<const OpDef> (*kFamilies[])() = {
    ActivationOps, AttentionOps,     AveragePoolOps, BinaryOps,   BitsOps,      ClassLossOps,
    CompareOps,    ConvOps,          CopyOps,        CountingOps, DistanceOps,  DropoutOps,
    EigenOps,      EmbeddingOps,     ExtremumOps,    FactoryOps,  FftOps,       FractionalPoolOps,
    GridSampleOps, GroupedMatmulOps, HistogramOps,   HostOps,     IndexingOps,  LdlOps,
    LinalgOps,     LossOps,          LuOps,          MatmulOps,   MatrixExpOps, NormOps,
    OptimOps,      PadOps,           PolynomialOps,  PoolOps,     QrOps,        RandomGradOps,
    RandomLoopOps, RandomOps,        ReduceOps,      RnnOps,      ScanOps,      ScatterOps,
    SegmentOps,    SoftmaxOps,       SolveOps,       SortOps,     SpecialOps,   UnaryOps,
    UpsampleOps,   ViewOps,
};

struct Table {
  std::vector<const OpDef*> rows;
  std::unordered_map<std::string_view, const OpDef*> by_name;
  std::vector<std::string_view> twice;  // names with two rows: a fault of the table
  Table() {
    for (auto* family : kFamilies) {
      for (const OpDef& row : family()) {
        rows.push_back(&row);
        if (!by_name.emplace(row.name, &row).second) twice.push_back(row.name);
      }
    }
  }
};
const Table& TheTable() {
  static const Table* const t = new Table;
  return *t;
}

}  // namespace

std::span<const OpDef* const> AllOps() { return TheTable().rows; }

const OpDef* FindOp(std::string_view name) {
  const auto it = TheTable().by_name.find(name);
  return it == TheTable().by_name.end() ? nullptr : it->second;
}

std::span<const std::string_view> DuplicateRows() { return TheTable().twice; }

std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kUnary: return "unary";
    case Kind::kBinary: return "binary";
    case Kind::kCompare: return "compare";
    case Kind::kPointwise: return "pointwise";
    case Kind::kReduce: return "reduce";
    case Kind::kView: return "view";
    case Kind::kIndexing: return "indexing";
    case Kind::kScatter: return "scatter";
    case Kind::kSort: return "sort";
    case Kind::kMatmul: return "matmul";
    case Kind::kConv: return "convolution";
    case Kind::kPool: return "pooling";
    case Kind::kNorm: return "normalisation";
    case Kind::kAttention: return "attention";
    case Kind::kLoss: return "loss";
    case Kind::kEmbedding: return "embedding";
    case Kind::kRandom: return "random";
    case Kind::kFactory: return "factory";
    case Kind::kCopy: return "copy";
    case Kind::kOptim: return "optimizer";
    case Kind::kFft: return "fft";
    case Kind::kLinalg: return "linear algebra";
    case Kind::kQuant: return "quantisation";
    case Kind::kRnn: return "recurrent";
  }
  return "";
}

}  // namespace tpu::ops
