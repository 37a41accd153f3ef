// Constants and ops that work element by element, and which dtypes each of them takes.
#include <array>
#include <cmath>

#include "hlo/function_impl.h"

namespace tpu::hlo {
namespace {

struct OpInfo {
  std::string_view name;
  unsigned dtypes;
};

// In the order of the enumerations.
constexpr std::array kUnary = {
    OpInfo{"stablehlo.abs", kSignedSet | kFpSet},
    OpInfo{"stablehlo.cbrt", kFloatSet},
    OpInfo{"stablehlo.ceil", kFloatSet},
    OpInfo{"stablehlo.cosine", kFpSet},
    OpInfo{"stablehlo.exponential", kFpSet},
    OpInfo{"stablehlo.exponential_minus_one", kFpSet},
    OpInfo{"stablehlo.floor", kFloatSet},
    OpInfo{"stablehlo.imag", kFpSet},
    OpInfo{"stablehlo.is_finite", kFloatSet},
    OpInfo{"stablehlo.log", kFpSet},
    OpInfo{"stablehlo.log_plus_one", kFpSet},
    OpInfo{"stablehlo.logistic", kFpSet},
    OpInfo{"stablehlo.negate", kNumberSet},
    OpInfo{"stablehlo.not", kBitsSet},
    OpInfo{"stablehlo.popcnt", kIntSet},
    OpInfo{"stablehlo.count_leading_zeros", kIntSet},
    OpInfo{"stablehlo.real", kFpSet},
    OpInfo{"stablehlo.round_nearest_afz", kFloatSet},
    OpInfo{"stablehlo.round_nearest_even", kFloatSet},
    OpInfo{"stablehlo.rsqrt", kFpSet},
    OpInfo{"stablehlo.sign", kSignedSet | kFpSet},
    OpInfo{"stablehlo.sine", kFpSet},
    OpInfo{"stablehlo.sqrt", kFpSet},
    OpInfo{"stablehlo.tan", kFpSet},
    OpInfo{"stablehlo.tanh", kFpSet},
    OpInfo{"chlo.acos", kFpSet},
    OpInfo{"chlo.acosh", kFpSet},
    OpInfo{"chlo.asin", kFpSet},
    OpInfo{"chlo.asinh", kFpSet},
    OpInfo{"chlo.atan", kFpSet},
    OpInfo{"chlo.atanh", kFpSet},
    OpInfo{"chlo.cosh", kFpSet},
    OpInfo{"chlo.sinh", kFpSet},
    OpInfo{"chlo.erf", kFloatSet},
    OpInfo{"chlo.erfc", kWideFloatSet},
    OpInfo{"chlo.erf_inv", kFloatSet},
    OpInfo{"chlo.lgamma", kFloatSet},
    OpInfo{"chlo.digamma", kFloatSet},
    OpInfo{"chlo.bessel_i1e", kWideFloatSet},
};
static_assert(kUnary.size() == static_cast<size_t>(UnaryOp::kBesselI1e) + 1);

constexpr std::array kBinary = {
    OpInfo{"stablehlo.add", kAllSet},
    OpInfo{"stablehlo.and", kBitsSet},
    OpInfo{"stablehlo.atan2", kFpSet},
    OpInfo{"stablehlo.complex", kFloatSet},
    OpInfo{"stablehlo.divide", kNumberSet},
    OpInfo{"stablehlo.maximum", kRealSet},
    OpInfo{"stablehlo.minimum", kRealSet},
    OpInfo{"stablehlo.multiply", kAllSet},
    OpInfo{"stablehlo.or", kBitsSet},
    OpInfo{"stablehlo.power", kNumberSet},
    OpInfo{"stablehlo.remainder", kIntSet | kFloatSet},  // on complex XLA crashes
    OpInfo{"stablehlo.shift_left", kIntSet},
    OpInfo{"stablehlo.shift_right_arithmetic", kIntSet},
    OpInfo{"stablehlo.shift_right_logical", kIntSet},
    OpInfo{"stablehlo.subtract", kNumberSet},
    OpInfo{"stablehlo.xor", kBitsSet},
    OpInfo{"chlo.next_after", kFloatSet},
    OpInfo{"chlo.polygamma", kFloatSet},
    OpInfo{"chlo.zeta", kFloatSet},
};
static_assert(kBinary.size() == static_cast<size_t>(BinaryOp::kZeta) + 1);

constexpr std::array<std::string_view, 6> kDirections = {"EQ", "NE", "LT", "LE", "GT", "GE"};

bool IsChlo(std::string_view name) { return name.starts_with("chlo."); }

bool IsF32OrF64(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF64; }

}  // namespace

Value Function::Constant(const Type& type, Number splat) {
  if (!impl_->status.ok()) return {};
  constexpr std::string_view kName = "stablehlo.constant";
  if (type.dtype == DType::kInvalid) return impl_->Error(kName, "has no dtype");
  Result<std::string> literal = Literal(type.dtype, splat);
  if (!literal.ok()) return Fail(literal.status());
  std::string value = NumElements(type.dims) == 0 ? std::string() : *literal;
  return impl_->EmitOne(
      {kName, {}, {type}, Attributes().Text("value", "dense<" + value + "> : " + ToMlir(type))});
}

Value Function::ConstantI64(std::span<const int64_t> values, const Type& type) {
  if (!impl_->status.ok()) return {};
  constexpr std::string_view kName = "stablehlo.constant";
  if (type.dtype == DType::kInvalid) return impl_->Error(kName, "has no dtype");
  if (static_cast<int64_t>(values.size()) != NumElements(type.dims)) {
    return impl_->Error(kName, values.size(), " values for ", ToString(type));
  }
  std::vector<std::string> literals;
  literals.reserve(values.size());
  for (int64_t value : values) {
    Result<std::string> literal = Literal(type.dtype, value);
    if (!literal.ok()) return Fail(literal.status());
    literals.push_back(std::move(literal).value());
  }
  std::string text = values.empty() ? std::string() : NestedLiterals(literals, type.dims);
  return impl_->EmitOne(
      {kName, {}, {type}, Attributes().Text("value", "dense<" + text + "> : " + ToMlir(type))});
}

Value Function::Iota(const Type& type, int64_t dim) {
  if (!impl_->status.ok()) return {};
  constexpr std::string_view kName = "stablehlo.iota";
  if (!Contains(kNumberSet, type.dtype)) {
    return impl_->Error(kName, "takes ", DescribeSet(kNumberSet), ", not ", ToString(type));
  }
  if (dim < 0 || dim >= static_cast<int64_t>(type.dims.size())) {
    return impl_->Error(kName, "no dimension ", dim, " in ", ToString(type));
  }
  return impl_->EmitOne({kName, {}, {type}, Attributes().I64("iota_dimension", dim)});
}

Value Function::Unary(UnaryOp op, Value a) {
  const OpInfo& info = kUnary[static_cast<size_t>(op)];
  if (!impl_->Accepts(info.name, {a}) || !impl_->Takes(info.name, a, info.dtypes)) return {};
  Type result = a.type();
  if (op == UnaryOp::kIsFinite) {
    result.dtype = DType::kBool;
  } else if (op == UnaryOp::kAbs || op == UnaryOp::kReal || op == UnaryOp::kImag) {
    result.dtype = RealOf(a.dtype());
  }
  if (result == a.type() && !IsChlo(info.name)) {
    return impl_->EmitElementwise(info.name, std::span<const Value>(&a, 1));
  }
  return impl_->EmitOne({info.name, {a}, {result}});
}

Value Function::Binary(BinaryOp op, Value a, Value b) {
  const OpInfo& info = kBinary[static_cast<size_t>(op)];
  if (!impl_->Accepts(info.name, {a, b})) return {};
  if (a.type() != b.type()) {
    return impl_->Error(info.name, "operands differ: ", ToString(a.type()), " and ",
                        ToString(b.type()));
  }
  if (!impl_->Takes(info.name, a, info.dtypes)) return {};
  const bool divides = op == BinaryOp::kDivide || op == BinaryOp::kRemainder;
  if (divides && impl_->emulate_64bit && IsInteger(a.dtype()) && ItemSize(a.dtype()) == 8) {
    return WideDivide(op, a, b);
  }
  Type result = a.type();
  if (op == BinaryOp::kComplex) {
    if (!IsF32OrF64(a.dtype())) {
      return impl_->Error(info.name, "takes float32 or float64, not ", ToString(a.type()));
    }
    result.dtype = ComplexOf(a.dtype());
  }
  if (result == a.type() && !IsChlo(info.name)) {
    Value operands[] = {a, b};
    return impl_->EmitElementwise(info.name, operands);
  }
  return impl_->EmitOne({info.name, {a, b}, {result}});
}

Value Function::Compare(CompareOp op, Value a, Value b) {
  constexpr std::string_view kName = "stablehlo.compare";
  if (!impl_->Accepts(kName, {a, b})) return {};
  if (a.type() != b.type()) {
    return impl_->Error(kName, "operands differ: ", ToString(a.type()), " and ",
                        ToString(b.type()));
  }
  if (IsComplex(a.dtype()) && op != CompareOp::kEq && op != CompareOp::kNe) {
    return impl_->Error(kName, "complex numbers have no order: ", ToString(a.type()));
  }
  std::string direction = "#stablehlo<comparison_direction ";
  direction.append(kDirections[static_cast<size_t>(op)]).append(">");
  return impl_->EmitOne({kName,
                         {a, b},
                         {{DType::kBool, a.dims()}},
                         Attributes().Text("comparison_direction", direction)});
}

Value Function::CompareTotal(CompareOp op, Value a, Value b) {
  constexpr std::string_view kName = "stablehlo.compare (total order)";
  if (!impl_->Accepts(kName, {a, b})) return {};
  if (a.type() != b.type()) {
    return impl_->Error(kName, "operands differ: ", ToString(a.type()), " and ",
                        ToString(b.type()));
  }
  if (!impl_->Takes(kName, a, kFloatSet)) return {};
  std::string direction = "#stablehlo<comparison_direction ";
  direction.append(kDirections[static_cast<size_t>(op)]).append(">");
  return impl_->EmitOne({"stablehlo.compare",
                         {a, b},
                         {{DType::kBool, a.dims()}},
                         Attributes()
                             .Text("comparison_direction", direction)
                             .Text("compare_type", "#stablehlo<comparison_type TOTALORDER>")});
}

Value Function::Select(Value pred, Value on_true, Value on_false) {
  constexpr std::string_view kName = "stablehlo.select";
  if (!impl_->Accepts(kName, {pred, on_true, on_false})) return {};
  if (on_true.type() != on_false.type()) {
    return impl_->Error(kName, "operands differ: ", ToString(on_true.type()), " and ",
                        ToString(on_false.type()));
  }
  if (!IsBool(pred.dtype()) || (pred.rank() != 0 && pred.dims() != on_true.dims())) {
    return impl_->Error(kName, "the predicate ", ToString(pred.type()), " doesn't fit ",
                        ToString(on_true.type()));
  }
  return impl_->EmitOne({kName, {pred, on_true, on_false}, {on_true.type()}});
}

Value Function::Clamp(Value low, Value a, Value high) {
  constexpr std::string_view kName = "stablehlo.clamp";
  if (!impl_->Accepts(kName, {low, a, high})) return {};
  for (Value bound : {low, high}) {
    if (bound.dtype() != a.dtype() || (bound.rank() != 0 && bound.dims() != a.dims())) {
      return impl_->Error(kName, "the bound ", ToString(bound.type()), " doesn't fit ",
                          ToString(a.type()));
    }
  }
  if (!impl_->Takes(kName, a, kRealSet)) return {};
  return impl_->EmitOne({kName, {low, a, high}, {a.type()}});
}

Value Function::Convert(Value a, DType dtype) {
  constexpr std::string_view kName = "stablehlo.convert";
  if (!impl_->Accepts(kName, {a})) return {};
  if (dtype == DType::kInvalid) return impl_->Error(kName, "to no dtype");
  if (dtype == a.dtype()) return a;
  return impl_->EmitOne({kName, {a}, {{dtype, a.dims()}}});
}

Value Function::BitcastConvert(Value a, DType dtype) {
  constexpr std::string_view kName = "stablehlo.bitcast_convert";
  if (!impl_->Accepts(kName, {a})) return {};
  if (dtype == a.dtype()) return a;
  // XLA refuses some of these and aborts the process on others.
  if (dtype == DType::kInvalid || IsBool(dtype) || IsBool(a.dtype()) || IsComplex(dtype) ||
      IsComplex(a.dtype())) {
    return impl_->Error(kName, "can't read the bits of ", ToString(a.type()), " as ",
                        TorchName(dtype));
  }
  int64_t from = ItemSize(a.dtype()), to = ItemSize(dtype);
  Dims dims = a.dims();
  if (to < from) {
    dims.push_back(from / to);
  } else if (to > from) {
    if (dims.empty() || dims.back() != to / from) {
      return impl_->Error(kName, ToString(a.type()), " to ", TorchName(dtype),
                          " needs a last dimension of ", to / from);
    }
    dims.pop_back();
  }
  return impl_->EmitOne({kName, {a}, {{dtype, std::move(dims)}}});
}

}  // namespace tpu::hlo
