// Rows whose result's size depends on their operands' values, or that are a chain of decisions. The
// front end reads the operands once and computes on the host; there is no program.
#include "ops/host.h"

namespace tpu::ops {
namespace {

constexpr std::string_view kWhy = "the size of the result depends on the data: one host read";
constexpr std::string_view kEigWhy =
    "eigenvalues of a general matrix: a long chain of small steps that depend on data";
constexpr std::string_view kAssertWhy = "raises at once if the value is false: one host read";

constexpr OpDef Host(std::string_view name, Kind kind, std::string_view why = kWhy) {
  OpDef row{name, kind};
  row.status = StatusKind::kHost;
  row.note = why;
  return row;
}

constexpr OpDef kRows[] = {
    Host("aten::_assert_async", Kind::kReduce, kAssertWhy),
    Host("aten::_assert_async.msg", Kind::kReduce, kAssertWhy),
    Host("aten::_linalg_eigvals", Kind::kLinalg, kEigWhy),
    Host("aten::_unique", Kind::kSort),
    Host("aten::_unique2", Kind::kSort),
    Host("aten::bincount", Kind::kScatter),
    Host("aten::linalg_eig", Kind::kLinalg, kEigWhy),
    Host("aten::linalg_eigvals.out", Kind::kLinalg, kEigWhy),
    Host("aten::masked_select", Kind::kIndexing),
    Host("aten::nonzero", Kind::kIndexing),
    Host("aten::repeat_interleave.Tensor", Kind::kIndexing),
    Host("aten::unique_consecutive", Kind::kSort),
    Host("aten::unique_dim", Kind::kSort),
    Host("aten::unique_dim_consecutive", Kind::kSort),
};

}  // namespace

std::span<const OpDef> HostOps() { return kRows; }

}  // namespace tpu::ops
