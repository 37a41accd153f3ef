// Gather, scatter, sort: ops that move elements to places known only at run time.
#include <algorithm>

#include "hlo/function_impl.h"

namespace tpu::hlo {
namespace {

bool Has(DimsView dims, int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }

bool IsAscending(DimsView dims) {
  return std::adjacent_find(dims.begin(), dims.end(), std::greater_equal<>()) == dims.end();
}

// The parts that gather and scatter share: how a list of windows of the operand lies in the other
// array (gather's result, scatter's updates).
struct IndexDims {
  DimsView window;            // dimensions of the windowed array that lie within a window
  DimsView dropped;           // operand dimensions of window size 1 that it doesn't have
  DimsView operand_batching;  // operand dimensions that go along with ...
  DimsView indices_batching;  // ... these of the indices
  DimsView index_map;         // operand dimension of each component of an index
  int64_t vector_dim;
};

// What is wrong with the numbers; empty if nothing.
std::string Check(const IndexDims& d, const Type& operand, const Type& indices) {
  auto rank = static_cast<int64_t>(operand.dims.size());
  auto indices_rank = static_cast<int64_t>(indices.dims.size());
  if (!IsInteger(indices.dtype)) return "indices must be integers";
  if (d.vector_dim < 0 || d.vector_dim > indices_rank) return "no such index vector dimension";
  int64_t components =
      d.vector_dim == indices_rank ? 1 : indices.dims[static_cast<size_t>(d.vector_dim)];
  if (components != static_cast<int64_t>(d.index_map.size())) {
    return "indices have " + std::to_string(components) + " components for " +
           std::to_string(d.index_map.size()) + " dimensions";
  }
  if (!IsAscending(d.window) || !IsAscending(d.dropped) || !IsAscending(d.operand_batching)) {
    return "window, collapsed and batching dimensions must ascend";
  }
  if (static_cast<int64_t>(d.window.size() + d.dropped.size() + d.operand_batching.size()) !=
      rank) {
    return "window, collapsed and batching dimensions don't add up to the operand's rank";
  }
  std::vector<int> uses(static_cast<size_t>(rank)), mapped(static_cast<size_t>(rank));
  for (DimsView list : {d.dropped, d.operand_batching}) {
    for (int64_t i : list) {
      if (i < 0 || i >= rank || uses[static_cast<size_t>(i)]++ > 0) {
        return "collapsed or batching dimensions are out of range or repeat";
      }
    }
  }
  for (int64_t i : d.index_map) {
    if (i < 0 || i >= rank || mapped[static_cast<size_t>(i)]++ > 0 || Has(d.operand_batching, i)) {
      return "the index map is out of range or repeats";
    }
  }
  if (d.operand_batching.size() != d.indices_batching.size()) {
    return "batching dimensions differ in number";
  }
  for (size_t i = 0; i < d.operand_batching.size(); ++i) {
    int64_t mine = d.operand_batching[i], theirs = d.indices_batching[i];
    if (theirs < 0 || theirs >= indices_rank || theirs == d.vector_dim ||
        operand.dims[static_cast<size_t>(mine)] != indices.dims[static_cast<size_t>(theirs)]) {
      return "batching dimensions don't fit";
    }
  }
  return {};
}

// The shape of gather's result or scatter's updates: windows of `sizes` (without those that are
// dropped) at the window dimensions, the indices' dimensions elsewhere. Empty optional: the window
// dimensions don't fit.
bool WindowedDims(const IndexDims& d, const Type& indices, DimsView sizes, Dims* out) {
  Dims outer;
  for (int64_t i = 0; i < static_cast<int64_t>(indices.dims.size()); ++i) {
    if (i != d.vector_dim) outer.push_back(indices.dims[static_cast<size_t>(i)]);
  }
  Dims inner;
  for (int64_t i = 0; i < static_cast<int64_t>(sizes.size()); ++i) {
    if (!Has(d.dropped, i) && !Has(d.operand_batching, i)) {
      inner.push_back(sizes[static_cast<size_t>(i)]);
    }
  }
  size_t rank = outer.size() + inner.size();
  for (int64_t i : d.window) {
    if (i < 0 || i >= static_cast<int64_t>(rank)) return false;
  }
  size_t next_outer = 0, next_inner = 0;
  for (size_t i = 0; i < rank; ++i) {
    out->push_back(Has(d.window, static_cast<int64_t>(i)) ? inner[next_inner++]
                                                          : outer[next_outer++]);
  }
  return true;
}

std::string GatherText(const GatherDims& dims) {
  std::string out = "#stablehlo.gather<";
  AppendField(&out, "offset_dims", dims.offset_dims);
  AppendField(&out, "collapsed_slice_dims", dims.collapsed_slice_dims);
  AppendField(&out, "operand_batching_dims", dims.operand_batching_dims);
  AppendField(&out, "start_indices_batching_dims", dims.start_indices_batching_dims);
  AppendField(&out, "start_index_map", dims.start_index_map);
  return out + "index_vector_dim = " + std::to_string(dims.index_vector_dim) + ">";
}

std::string ScatterText(const ScatterDims& dims) {
  std::string out = "#stablehlo.scatter<";
  AppendField(&out, "update_window_dims", dims.update_window_dims);
  AppendField(&out, "inserted_window_dims", dims.inserted_window_dims);
  AppendField(&out, "input_batching_dims", dims.input_batching_dims);
  AppendField(&out, "scatter_indices_batching_dims", dims.scatter_indices_batching_dims);
  AppendField(&out, "scatter_dims_to_operand_dims", dims.scatter_dims_to_operand_dims);
  return out + "index_vector_dim = " + std::to_string(dims.index_vector_dim) + ">";
}

}  // namespace

Value Function::Gather(Value operand, Value indices, const GatherDims& dims, DimsView slice_sizes,
                       bool sorted) {
  constexpr std::string_view kName = "stablehlo.gather";
  if (!impl_->Accepts(kName, {operand, indices})) return {};
  IndexDims d{dims.offset_dims,           dims.collapsed_slice_dims,
              dims.operand_batching_dims, dims.start_indices_batching_dims,
              dims.start_index_map,       dims.index_vector_dim};
  std::string wrong = Check(d, operand.type(), indices.type());
  if (wrong.empty() && static_cast<int64_t>(slice_sizes.size()) != operand.rank()) {
    wrong = "slice sizes " + ToString(slice_sizes);
  }
  for (int64_t i = 0; wrong.empty() && i < operand.rank(); ++i) {
    int64_t size = slice_sizes[static_cast<size_t>(i)];
    bool dropped = Has(d.dropped, i) || Has(d.operand_batching, i);
    if (size < 0 || size > operand.dim(i) || (dropped && size > 1)) {
      wrong = "slice sizes " + ToString(slice_sizes);
    }
  }
  Type result{operand.dtype(), {}};
  if (wrong.empty() && !WindowedDims(d, indices.type(), slice_sizes, &result.dims)) {
    wrong = "offset dimensions " + ToString(dims.offset_dims);
  }
  if (!wrong.empty()) {
    return impl_->Error(kName, wrong, ": operand ", ToString(operand.type()), ", indices ",
                        ToString(indices.type()));
  }
  return impl_->EmitOne({kName,
                         {operand, indices},
                         {result},
                         Attributes()
                             .Text("dimension_numbers", GatherText(dims))
                             .Array("slice_sizes", slice_sizes)
                             .Bool("indices_are_sorted", sorted)});
}

namespace {

// What is wrong with the updates' shape; empty if nothing.
std::string CheckUpdates(const IndexDims& d, const Type& operand, const Type& indices,
                         const Type& updates) {
  Dims window;
  for (int64_t i : d.window) {
    if (i < 0 || i >= static_cast<int64_t>(updates.dims.size())) return "no such update window";
    window.push_back(updates.dims[static_cast<size_t>(i)]);
  }
  Dims sizes;  // of a window in the operand
  size_t next = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(operand.dims.size()); ++i) {
    bool dropped = Has(d.dropped, i) || Has(d.operand_batching, i);
    sizes.push_back(dropped ? 1 : window[next++]);
    if (!dropped && sizes.back() > operand.dims[static_cast<size_t>(i)]) {
      return "an update window is larger than the operand";
    }
  }
  Dims expected;
  if (!WindowedDims(d, indices, sizes, &expected) || expected != updates.dims) {
    return "updates and indices don't fit";
  }
  return {};
}

}  // namespace

Values Function::Scatter(const Values& operands, Value indices, const Values& updates,
                         const ScatterDims& dims, const Body& body, bool unique, bool sorted) {
  constexpr std::string_view kName = "stablehlo.scatter";
  size_t n = operands.size();
  Values all = operands;
  all.push_back(indices);
  all.insert(all.end(), updates.begin(), updates.end());
  if (!impl_->Accepts(kName, all)) return Values(n);
  if (n == 0 || updates.size() != n) {
    return impl_->Errors(n, kName, n, " operands and ", updates.size(), " updates");
  }
  IndexDims d{dims.update_window_dims,           dims.inserted_window_dims,
              dims.input_batching_dims,          dims.scatter_indices_batching_dims,
              dims.scatter_dims_to_operand_dims, dims.index_vector_dim};
  std::vector<Type> results, scalars;
  for (size_t i = 0; i < n; ++i) {
    const Type &operand = operands[i].type(), &update = updates[i].type();
    std::string wrong = Check(d, operand, indices.type());
    if (wrong.empty()) wrong = CheckUpdates(d, operand, indices.type(), update);
    if (operand.dims != operands[0].dims() || update.dtype != operand.dtype) {
      wrong = "operands and updates differ";
    }
    if (!wrong.empty()) {
      return impl_->Errors(n, kName, wrong, ": operand ", ToString(operand), ", indices ",
                           ToString(indices.type()), ", updates ", ToString(update));
    }
    results.push_back(operand);
    scalars.push_back({operand.dtype, {}});
  }
  std::vector<Type> arguments = scalars;
  arguments.insert(arguments.end(), scalars.begin(), scalars.end());
  Region region = impl_->Build(kName, arguments, body, true, scalars);
  if (!region.ok) return Values(n);
  return impl_->Emit({kName,
                      all,
                      results,
                      Attributes()
                          .Text("scatter_dimension_numbers", ScatterText(dims))
                          .Bool("indices_are_sorted", sorted)
                          .Bool("unique_indices", unique),
                      {std::move(region.text)}});
}

Values Function::Sort(const Values& operands, int64_t dim, bool stable, const Body& less) {
  constexpr std::string_view kName = "stablehlo.sort";
  size_t n = operands.size();
  if (!impl_->Accepts(kName, operands)) return Values(n);
  if (n == 0) return impl_->Errors(n, kName, "of nothing");
  if (dim < 0 || dim >= operands[0].rank()) {
    return impl_->Errors(n, kName, "no dimension ", dim, " in ", ToString(operands[0].type()));
  }
  std::vector<Type> results, arguments;
  for (const Value& operand : operands) {
    if (operand.dims() != operands[0].dims()) {
      return impl_->Errors(n, kName, "operands differ in shape: ", ToString(operands[0].type()),
                           " and ", ToString(operand.type()));
    }
    results.push_back(operand.type());
    arguments.insert(arguments.end(), 2, Type{operand.dtype(), {}});
  }
  Region region = impl_->Build(kName, arguments, less, true, {{DType::kBool, {}}});
  if (!region.ok) return Values(n);
  return impl_->Emit({kName,
                      operands,
                      results,
                      Attributes().I64("dimension", dim).Bool("is_stable", stable),
                      {std::move(region.text)}});
}

}  // namespace tpu::hlo
