// Reductions, windowed reductions, and their identities.
#include <algorithm>
#include <limits>

#include "hlo/function_impl.h"

namespace tpu::hlo {
namespace {

// The lowest value; float8 types without an infinity end at their largest finite number.
double LowestFloat(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3FN: return -448;
    case DType::kF8E4M3FNUZ: return -240;
    case DType::kF8E5M2FNUZ: return -57344;
    default: return -std::numeric_limits<double>::infinity();
  }
}

Number Lowest(DType dtype) {
  if (IsBool(dtype)) return false;
  if (IsFloat(dtype)) return LowestFloat(dtype);
  if (IsUnsigned(dtype)) return int64_t{0};
  return std::numeric_limits<int64_t>::min() >> (64 - 8 * ItemSize(dtype));
}

Number Highest(DType dtype) {
  if (IsBool(dtype)) return true;
  if (IsFloat(dtype)) return -LowestFloat(dtype);
  if (IsUnsigned(dtype)) return int64_t{-1};  // wraps
  return std::numeric_limits<int64_t>::max() >> (64 - 8 * ItemSize(dtype));
}

// 2n scalars: the accumulated values, then the elements.
std::vector<Type> PairTypes(const Values& operands) {
  std::vector<Type> types;
  for (int side = 0; side < 2; ++side) {
    for (const Value& operand : operands) types.push_back({operand.dtype(), {}});
  }
  return types;
}

std::vector<Type> ScalarTypes(const Values& operands) {
  std::vector<Type> types;
  for (const Value& operand : operands) types.push_back({operand.dtype(), {}});
  return types;
}

Values Joined(const Values& a, const Values& b) {
  Values all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

Body MonoidBody(Monoid monoid, DType dtype) {
  return [op = MonoidOp(monoid, dtype)](Function& fn, const Values& args) {
    return Values{fn.Binary(op, args[0], args[1])};
  };
}

unsigned MonoidDTypes(Monoid monoid) {
  switch (monoid) {
    case Monoid::kMax:
    case Monoid::kMin: return kRealSet;
    case Monoid::kAnd:
    case Monoid::kOr: return kBitsSet;
    default: return kAllSet;
  }
}

}  // namespace

Number Identity(Monoid monoid, DType dtype) {
  switch (monoid) {
    case Monoid::kAdd:
    case Monoid::kOr: return int64_t{0};
    case Monoid::kMul: return int64_t{1};
    case Monoid::kMax: return Lowest(dtype);
    case Monoid::kMin: return Highest(dtype);
    case Monoid::kAnd: return int64_t{-1};
  }
  return int64_t{0};
}

BinaryOp MonoidOp(Monoid monoid, DType dtype) {
  bool logical = IsBool(dtype);
  switch (monoid) {
    case Monoid::kAdd: return logical ? BinaryOp::kOr : BinaryOp::kAdd;
    case Monoid::kMul: return logical ? BinaryOp::kAnd : BinaryOp::kMultiply;
    case Monoid::kMax: return logical ? BinaryOp::kOr : BinaryOp::kMaximum;
    case Monoid::kMin: return logical ? BinaryOp::kAnd : BinaryOp::kMinimum;
    case Monoid::kAnd: return BinaryOp::kAnd;
    case Monoid::kOr: return BinaryOp::kOr;
  }
  return BinaryOp::kAdd;
}

int64_t WindowedSize(int64_t size, const Window& window) {
  auto dilated = [](int64_t n, int64_t by) { return n == 0 ? 0 : (n - 1) * by + 1; };
  int64_t padded = window.pad_low + dilated(size, window.base_dilation) + window.pad_high;
  int64_t extent = dilated(window.size, window.window_dilation);
  return padded <= 0 || extent > padded ? 0 : (padded - extent) / window.stride + 1;
}

std::string CheckWindows(DimsView dims, std::span<const Window> windows) {
  if (windows.size() != dims.size()) {
    return std::to_string(windows.size()) + " windows for " + std::to_string(dims.size()) +
           " dimensions";
  }
  for (const Window& window : windows) {
    if (window.size < 1 || window.stride < 1 || window.base_dilation < 1 ||
        window.window_dilation < 1) {
      return "sizes, strides and dilations of windows must be positive";
    }
  }
  return {};
}

Value Function::Reduce(Value a, Monoid monoid, DimsView dims) {
  constexpr std::string_view kName = "stablehlo.reduce";
  if (!impl_->Accepts(kName, {a}) || !impl_->Takes(kName, a, MonoidDTypes(monoid))) return {};
  Value init = Scalar(a.dtype(), Identity(monoid, a.dtype()));
  return Reduce({a}, {init}, dims, MonoidBody(monoid, a.dtype())).front();
}

Values Function::Reduce(const Values& operands, const Values& inits, DimsView dims,
                        const Body& body) {
  constexpr std::string_view kName = "stablehlo.reduce";
  size_t n = operands.size();
  Values all = Joined(operands, inits);
  if (!impl_->Accepts(kName, all) || !impl_->AreInits(kName, operands, inits)) return Values(n);
  if (!impl_->AreDims(kName, "dimensions", dims, operands[0].rank())) return Values(n);
  Dims kept;
  for (int64_t i = 0; i < operands[0].rank(); ++i) {
    if (std::find(dims.begin(), dims.end(), i) == dims.end()) kept.push_back(operands[0].dim(i));
  }
  std::vector<Type> results;
  for (const Value& operand : operands) results.push_back({operand.dtype(), kept});
  Region region = impl_->Build(kName, PairTypes(operands), body, true, ScalarTypes(operands));
  if (!region.ok) return Values(n);
  Dims sorted(dims.begin(), dims.end());
  std::sort(sorted.begin(), sorted.end());
  return impl_->Emit(
      {kName, all, results, Attributes().Array("dimensions", sorted), {std::move(region.text)}});
}

Value Function::ReduceWindow(Value a, Monoid monoid, std::span<const Window> windows) {
  constexpr std::string_view kName = "stablehlo.reduce_window";
  if (!impl_->Accepts(kName, {a}) || !impl_->Takes(kName, a, MonoidDTypes(monoid))) return {};
  Value init = Scalar(a.dtype(), Identity(monoid, a.dtype()));
  return ReduceWindow({a}, {init}, windows, MonoidBody(monoid, a.dtype())).front();
}

Values Function::ReduceWindow(const Values& operands, const Values& inits,
                              std::span<const Window> windows, const Body& body) {
  constexpr std::string_view kName = "stablehlo.reduce_window";
  size_t n = operands.size();
  Values all = Joined(operands, inits);
  if (!impl_->Accepts(kName, all) || !impl_->AreInits(kName, operands, inits)) return Values(n);
  std::string wrong = CheckWindows(operands[0].dims(), windows);
  if (!wrong.empty()) {
    return impl_->Errors(n, kName, wrong, " on ", ToString(operands[0].type()));
  }
  Dims dims;
  for (size_t i = 0; i < windows.size(); ++i) {
    dims.push_back(WindowedSize(operands[0].dims()[i], windows[i]));
  }
  std::vector<Type> results;
  for (const Value& operand : operands) results.push_back({operand.dtype(), dims});
  Region region = impl_->Build(kName, PairTypes(operands), body, true, ScalarTypes(operands));
  if (!region.ok) return Values(n);
  return impl_->Emit({kName,
                      all,
                      results,
                      Attributes()
                          .Windows("window_dimensions", windows, &Window::size)
                          .Windows("window_strides", windows, &Window::stride)
                          .Windows("base_dilations", windows, &Window::base_dilation)
                          .Windows("window_dilations", windows, &Window::window_dilation)
                          .Padding("padding", windows),
                      {std::move(region.text)}});
}

Value Function::SelectAndScatter(Value a, Value source, Value init, std::span<const Window> windows,
                                 const Body& select, const Body& scatter) {
  constexpr std::string_view kName = "stablehlo.select_and_scatter";
  if (!impl_->Accepts(kName, {a, source, init}) || !impl_->AreInits(kName, {a}, {init})) return {};
  std::string wrong = CheckWindows(a.dims(), windows);
  Type expected{a.dtype(), {}};
  for (size_t i = 0; wrong.empty() && i < windows.size(); ++i) {
    if (windows[i].base_dilation != 1 || windows[i].window_dilation != 1) {
      wrong = "takes no dilation";
    }
    expected.dims.push_back(WindowedSize(a.dims()[i], windows[i]));
  }
  if (!wrong.empty()) return impl_->Error(kName, wrong, " on ", ToString(a.type()));
  if (source.type() != expected) {
    return impl_->Error(kName, "the source is ", ToString(source.type()), ", not ",
                        ToString(expected));
  }
  Type scalar{a.dtype(), {}};
  Region choose = impl_->Build(kName, {scalar, scalar}, select, true, {{DType::kBool, {}}});
  if (!choose.ok) return {};
  Region combine = impl_->Build(kName, {scalar, scalar}, scatter, true, {scalar});
  if (!combine.ok) return {};
  return impl_->EmitOne({kName,
                         {a, source, init},
                         {a.type()},
                         Attributes()
                             .Windows("window_dimensions", windows, &Window::size)
                             .Windows("window_strides", windows, &Window::stride)
                             .Padding("padding", windows),
                         {std::move(choose.text), std::move(combine.text)}});
}

}  // namespace tpu::hlo
