// Ops that move elements and compute nothing. What would change nothing gives its operand back.
#include <algorithm>

#include "hlo/function_impl.h"

namespace tpu::hlo {
namespace {

std::vector<Value> WithStarts(std::initializer_list<Value> operands, const Values& starts) {
  Values all(operands);
  all.insert(all.end(), starts.begin(), starts.end());
  return all;
}

bool AreNatural(DimsView dims) {
  return std::all_of(dims.begin(), dims.end(), [](int64_t d) { return d >= 0; });
}

}  // namespace

Value Function::Reshape(Value a, DimsView dims) {
  constexpr std::string_view kName = "stablehlo.reshape";
  if (!impl_->Accepts(kName, {a})) return {};
  if (!AreNatural(dims) || NumElements(dims) != a.numel()) {
    return impl_->Error(kName, ToString(a.type()), " can't have the shape ", ToString(dims));
  }
  Type result{a.dtype(), Dims(dims.begin(), dims.end())};
  if (result.dims == a.dims()) return a;
  return impl_->EmitOne({kName, {a}, {result}});
}

Value Function::Transpose(Value a, DimsView perm) {
  constexpr std::string_view kName = "stablehlo.transpose";
  if (!impl_->Accepts(kName, {a})) return {};
  if (static_cast<int64_t>(perm.size()) != a.rank()) {
    return impl_->Error(kName, ToString(perm), " is no permutation of the dimensions of ",
                        ToString(a.type()));
  }
  if (!impl_->AreDims(kName, "permutation", perm, a.rank())) return {};
  if (std::is_sorted(perm.begin(), perm.end())) return a;
  Type result{a.dtype(), {}};
  for (int64_t d : perm) result.dims.push_back(a.dim(d));
  return impl_->EmitOne({kName, {a}, {result}, Attributes().Array("permutation", perm)});
}

Value Function::BroadcastInDim(Value a, DimsView dims, DimsView mapping) {
  constexpr std::string_view kName = "stablehlo.broadcast_in_dim";
  if (!impl_->Accepts(kName, {a})) return {};
  auto rank = static_cast<int64_t>(dims.size());
  if (!AreNatural(dims) || static_cast<int64_t>(mapping.size()) != a.rank()) {
    return impl_->Error(kName, ToString(a.type()), " to ", ToString(dims), " by ",
                        ToString(mapping));
  }
  if (!impl_->AreDims(kName, "mapping", mapping, rank)) return {};
  for (int64_t i = 0; i < a.rank(); ++i) {
    int64_t size = dims[static_cast<size_t>(mapping[static_cast<size_t>(i)])];
    if (a.dim(i) != size && a.dim(i) != 1) {
      return impl_->Error(kName, "dimension ", i, " of ", ToString(a.type()), " doesn't fit ",
                          ToString(dims), " by ", ToString(mapping));
    }
  }
  Type result{a.dtype(), Dims(dims.begin(), dims.end())};
  if (!std::is_sorted(mapping.begin(), mapping.end())) {
    // XLA wants ascending mappings: bring the operand's dimensions into that order first.
    Dims order = tpu::Iota(a.rank());
    std::sort(order.begin(), order.end(), [&](int64_t x, int64_t y) {
      return mapping[static_cast<size_t>(x)] < mapping[static_cast<size_t>(y)];
    });
    Dims sorted(mapping.begin(), mapping.end());
    std::sort(sorted.begin(), sorted.end());
    return BroadcastInDim(Transpose(a, order), dims, sorted);
  }
  if (result.dims == a.dims()) return a;
  return impl_->EmitOne(
      {kName, {a}, {result}, Attributes().Array("broadcast_dimensions", mapping)});
}

Value Function::BroadcastTo(Value a, DimsView dims) {
  constexpr std::string_view kName = "broadcast";
  if (!impl_->Accepts(kName, {a})) return {};
  auto added = static_cast<int64_t>(dims.size()) - a.rank();
  if (added < 0) {
    return impl_->Error(kName, ToString(a.type()), " can't have the shape ", ToString(dims));
  }
  Dims mapping = tpu::Iota(a.rank());
  for (int64_t& d : mapping) d += added;
  return BroadcastInDim(a, dims, mapping);
}

Value Function::Slice(Value a, DimsView starts, DimsView limits, DimsView strides) {
  constexpr std::string_view kName = "stablehlo.slice";
  if (!impl_->Accepts(kName, {a})) return {};
  auto rank = static_cast<size_t>(a.rank());
  if (starts.size() != rank || limits.size() != rank || strides.size() != rank) {
    return impl_->Error(kName, "starts ", ToString(starts), ", limits ", ToString(limits),
                        ", strides ", ToString(strides), " of ", ToString(a.type()));
  }
  Type result{a.dtype(), {}};
  for (size_t i = 0; i < rank; ++i) {
    if (starts[i] < 0 || starts[i] > limits[i] || limits[i] > a.dims()[i] || strides[i] < 1) {
      return impl_->Error(kName, "starts ", ToString(starts), ", limits ", ToString(limits),
                          ", strides ", ToString(strides), " leave ", ToString(a.type()));
    }
    result.dims.push_back((limits[i] - starts[i] + strides[i] - 1) / strides[i]);
  }
  if (result.dims == a.dims()) return a;
  return impl_->EmitOne({kName,
                         {a},
                         {result},
                         Attributes()
                             .Array("start_indices", starts)
                             .Array("limit_indices", limits)
                             .Array("strides", strides)});
}

Value Function::DynamicSlice(Value a, const Values& starts, DimsView sizes) {
  constexpr std::string_view kName = "stablehlo.dynamic_slice";
  Values operands = WithStarts({a}, starts);
  if (!impl_->Accepts(kName, operands) || !impl_->AreStarts(kName, starts, a.rank())) return {};
  bool fits = static_cast<int64_t>(sizes.size()) == a.rank();
  for (size_t i = 0; fits && i < sizes.size(); ++i) {
    fits = sizes[i] >= 0 && sizes[i] <= a.dims()[i];
  }
  if (!fits) {
    return impl_->Error(kName, "can't take ", ToString(sizes), " of ", ToString(a.type()));
  }
  Type result{a.dtype(), Dims(sizes.begin(), sizes.end())};
  return impl_->EmitOne({kName, operands, {result}, Attributes().Array("slice_sizes", sizes)});
}

Value Function::DynamicUpdateSlice(Value a, Value update, const Values& starts) {
  constexpr std::string_view kName = "stablehlo.dynamic_update_slice";
  Values operands = WithStarts({a, update}, starts);
  if (!impl_->Accepts(kName, operands) || !impl_->AreStarts(kName, starts, a.rank())) return {};
  bool fits = update.dtype() == a.dtype() && update.rank() == a.rank();
  for (int64_t i = 0; fits && i < a.rank(); ++i) fits = update.dim(i) <= a.dim(i);
  if (!fits) {
    return impl_->Error(kName, "the update ", ToString(update.type()), " doesn't fit ",
                        ToString(a.type()));
  }
  return impl_->EmitOne({kName, operands, {a.type()}});
}

Value Function::Pad(Value a, Value value, DimsView low, DimsView high, DimsView interior) {
  constexpr std::string_view kName = "stablehlo.pad";
  if (!impl_->Accepts(kName, {a, value})) return {};
  if (value.dtype() != a.dtype() || value.rank() != 0) {
    return impl_->Error(kName, "the padding value ", ToString(value.type()), " doesn't fit ",
                        ToString(a.type()));
  }
  auto rank = static_cast<size_t>(a.rank());
  bool fits = low.size() == rank && high.size() == rank && interior.size() == rank;
  bool nothing = true;
  Type result{a.dtype(), {}};
  for (size_t i = 0; fits && i < rank; ++i) {
    int64_t gaps = std::max<int64_t>(a.dims()[i] - 1, 0);
    result.dims.push_back(low[i] + a.dims()[i] + gaps * interior[i] + high[i]);
    fits = interior[i] >= 0 && result.dims.back() >= 0;
    nothing = nothing && low[i] == 0 && high[i] == 0 && gaps * interior[i] == 0;
  }
  if (!fits) {
    return impl_->Error(kName, "low ", ToString(low), ", high ", ToString(high), ", interior ",
                        ToString(interior), " don't fit ", ToString(a.type()));
  }
  if (nothing) return a;
  return impl_->EmitOne({kName,
                         {a, value},
                         {result},
                         Attributes()
                             .Array("edge_padding_low", low)
                             .Array("edge_padding_high", high)
                             .Array("interior_padding", interior)});
}

Value Function::Concatenate(const Values& values, int64_t dim) {
  constexpr std::string_view kName = "stablehlo.concatenate";
  if (!impl_->Accepts(kName, values)) return {};
  if (values.empty()) return impl_->Error(kName, "of nothing");
  if (dim < 0 || dim >= values[0].rank()) {
    return impl_->Error(kName, "no dimension ", dim, " in ", ToString(values[0].type()));
  }
  Type result = values[0].type();
  int64_t& total = result.dims[static_cast<size_t>(dim)];
  for (size_t i = 1; i < values.size(); ++i) {
    Type like = values[i].type();
    bool fits = like.dims.size() == result.dims.size();
    if (fits) {
      total += like.dims[static_cast<size_t>(dim)];
      like.dims[static_cast<size_t>(dim)] = total;
    }
    if (!fits || like != result) {
      return impl_->Error(kName, "operands differ outside dimension ", dim, ": ",
                          ToString(values[0].type()), " and ", ToString(values[i].type()));
    }
  }
  if (values.size() == 1) return values[0];
  return impl_->EmitOne({kName, values, {result}, Attributes().I64("dimension", dim)});
}

Value Function::Reverse(Value a, DimsView dims) {
  constexpr std::string_view kName = "stablehlo.reverse";
  if (!impl_->Accepts(kName, {a}) || !impl_->AreDims(kName, "dimensions", dims, a.rank())) {
    return {};
  }
  if (dims.empty()) return a;
  return impl_->EmitOne({kName, {a}, {a.type()}, Attributes().Array("dimensions", dims)});
}

}  // namespace tpu::hlo
