// Cases for hlo_compile_test: elementwise ops and constants.
#include <cmath>
#include <limits>

#include "hlo/compile_cases.h"

namespace tpu::hlo::testing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

constexpr const char* kSlowF64 = "float64 functions compile for seconds each";

constexpr DType kFloats[] = {DType::kF16, DType::kBF16, DType::kF32, DType::kF64};
constexpr DType kFloat8s[] = {DType::kF8E4M3FN, DType::kF8E5M2, DType::kF8E4M3FNUZ,
                              DType::kF8E5M2FNUZ};
constexpr DType kInts[] = {DType::kU8, DType::kU16, DType::kU32, DType::kU64,
                           DType::kI8, DType::kI16, DType::kI32, DType::kI64};

struct UnaryCase {
  UnaryOp op;
  const char* name;
  std::function<double(double)> reference;
};

double Unit(double x) { return x; }

const std::vector<UnaryCase>& RealUnary() {
  static const std::vector<UnaryCase> kCases = {
      {UnaryOp::kAbs, "abs", [](double x) { return std::fabs(x); }},
      {UnaryOp::kCbrt, "cbrt", [](double x) { return std::cbrt(x); }},
      {UnaryOp::kCeil, "ceil", [](double x) { return std::ceil(x); }},
      {UnaryOp::kCosine, "cosine", [](double x) { return std::cos(x); }},
      {UnaryOp::kExp, "exp", [](double x) { return std::exp(x); }},
      {UnaryOp::kExpm1, "expm1", [](double x) { return std::expm1(x); }},
      {UnaryOp::kFloor, "floor", [](double x) { return std::floor(x); }},
      {UnaryOp::kImag, "imag", [](double) { return 0.0; }},
      {UnaryOp::kIsFinite, "is_finite", [](double) { return 1.0; }},
      {UnaryOp::kLog, "log", [](double x) { return std::log(x); }},
      {UnaryOp::kLog1p, "log1p", [](double x) { return std::log1p(x); }},
      {UnaryOp::kLogistic, "logistic", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {UnaryOp::kNegate, "negate", [](double x) { return -x; }},
      {UnaryOp::kReal, "real", Unit},
      {UnaryOp::kRoundNearestAfz, "round_afz", [](double x) { return std::round(x); }},
      {UnaryOp::kRoundNearestEven, "round_even", [](double x) { return std::nearbyint(x); }},
      {UnaryOp::kRsqrt, "rsqrt", [](double x) { return 1 / std::sqrt(x); }},
      {UnaryOp::kSign, "sign", [](double x) { return x > 0 ? 1.0 : -1.0; }},
      {UnaryOp::kSine, "sine", [](double x) { return std::sin(x); }},
      {UnaryOp::kSqrt, "sqrt", [](double x) { return std::sqrt(x); }},
      {UnaryOp::kTan, "tan", [](double x) { return std::tan(x); }},
      {UnaryOp::kTanh, "tanh", [](double x) { return std::tanh(x); }},
      {UnaryOp::kAcos, "acos", [](double x) { return std::acos(x); }},
      {UnaryOp::kAcosh, "acosh", [](double x) { return std::acosh(x); }},
      {UnaryOp::kAsin, "asin", [](double x) { return std::asin(x); }},
      {UnaryOp::kAsinh, "asinh", [](double x) { return std::asinh(x); }},
      {UnaryOp::kAtan, "atan", [](double x) { return std::atan(x); }},
      {UnaryOp::kAtanh, "atanh", [](double x) { return std::atanh(x); }},
      {UnaryOp::kCosh, "cosh", [](double x) { return std::cosh(x); }},
      {UnaryOp::kSinh, "sinh", [](double x) { return std::sinh(x); }},
      {UnaryOp::kErf, "erf", [](double x) { return std::erf(x); }},
      {UnaryOp::kErfc, "erfc", [](double x) { return std::erfc(x); }},
      {UnaryOp::kErfInv, "erf_inv", nullptr},
      {UnaryOp::kLgamma, "lgamma", [](double x) { return std::lgamma(x); }},
      {UnaryOp::kDigamma, "digamma", nullptr},
      {UnaryOp::kBesselI1e, "bessel_i1e", nullptr},
  };
  return kCases;
}

bool Takes(UnaryOp op, DType dtype) {
  Function fn;
  fn.Unary(op, fn.Parameter({dtype, {}}));
  return fn.status().ok();
}

bool Takes(BinaryOp op, DType dtype) {
  Function fn;
  Value x = fn.Parameter({dtype, {}});
  fn.Binary(op, x, x);
  return fn.status().ok();
}

void AddUnary(std::vector<Case>* cases) {
  const std::vector<double> points = {-2.5, -0.75, 0.25, 0.75, 1.5};
  for (const UnaryCase& unary : RealUnary()) {
    std::vector<double> expected;
    for (double x : points) {
      if (unary.reference) expected.push_back(unary.reference(x));
    }
    Case c{"unary_" + std::string(unary.name),
           {F32({5}, points)},
           [op = unary.op](Function& fn, const Values& in) { return Values{fn.Unary(op, in[0])}; },
           {}};
    if (!expected.empty()) c.expected = {expected};
    cases->push_back(std::move(c));
  }
  cases->push_back({"unary_erf_inv_digamma",
                    {F32({2}, {0.5, -0.25})},
                    [](Function& fn, const Values& in) {
                      return Values{fn.Unary(UnaryOp::kErfInv, in[0]),
                                    fn.Unary(UnaryOp::kDigamma, Abs(in[0]))};
                    },
                    {{0.4769362762, -0.2253120550}, {-1.9635100260, -4.2274535334}}});
  for (DType dtype : kInts) {
    bool is_signed = IsSigned(dtype);
    int bits = 8 * static_cast<int>(ItemSize(dtype));
    cases->push_back({"unary_int_" + std::string(TorchName(dtype)),
                      {Of(dtype, {3}, {0, 1, 6})},
                      [is_signed](Function& fn, const Values& in) {
                        Values out = {fn.Unary(UnaryOp::kPopcnt, in[0]),
                                      fn.Unary(UnaryOp::kClz, in[0]), ~(~in[0]), -(-in[0])};
                        out.push_back(is_signed ? Abs(-in[0]) : in[0]);
                        out.push_back(is_signed ? Sign(-in[0]) : in[0]);
                        return out;
                      },
                      {{0, 1, 2},
                       {1.0 * bits, bits - 1.0, bits - 3.0},
                       {0, 1, 6},
                       {0, 1, 6},
                       {0, 1, 6},
                       is_signed ? std::vector<double>{0, -1, -1} : std::vector<double>{0, 1, 6}}});
  }
}

// Every unary op on every type that the builder lets through; float8_e5m2 stands for the float8
// types (asinh of float8_e4m3fn alone compiles for 11 s).
void AddUnaryTypes(std::vector<Case>* cases) {
  for (DType dtype :
       {DType::kF16, DType::kBF16, DType::kF64, DType::kF8E5M2, DType::kC64, DType::kC128}) {
    cases->push_back({"unary_all_" + std::string(TorchName(dtype)),
                      {},
                      [dtype](Function& fn, const Values&) {
                        Values out;
                        Value x = fn.Parameter({dtype, {4}});
                        for (const UnaryCase& unary : RealUnary()) {
                          if (Takes(unary.op, dtype)) out.push_back(fn.Unary(unary.op, x));
                        }
                        return out;
                      },
                      {}});
    if (dtype == DType::kF64 || dtype == DType::kC128) cases->back().not_on_tpu = kSlowF64;
  }
}

// The same for binary ops.
void AddBinaryTypes(std::vector<Case>* cases) {
  std::vector<DType> dtypes = {DType::kBool, DType::kC64, DType::kC128};
  dtypes.insert(dtypes.end(), std::begin(kFloats), std::end(kFloats));
  dtypes.insert(dtypes.end(), std::begin(kFloat8s), std::end(kFloat8s));
  for (DType dtype : dtypes) {
    cases->push_back({"binary_all_" + std::string(TorchName(dtype)),
                      {},
                      [dtype](Function& fn, const Values&) {
                        Values out;
                        Value x = fn.Parameter({dtype, {4}}), y = fn.Parameter({dtype, {4}});
                        for (int i = 0; i <= static_cast<int>(BinaryOp::kZeta); ++i) {
                          auto op = static_cast<BinaryOp>(i);
                          if (Takes(op, dtype)) out.push_back(fn.Binary(op, x, y));
                        }
                        return out;
                      },
                      {}});
    if (dtype == DType::kF64 || dtype == DType::kC128) cases->back().not_on_tpu = kSlowF64;
  }
}

void AddBinary(std::vector<Case>* cases) {
  for (DType dtype : kFloats) {
    cases->push_back({"binary_" + std::string(TorchName(dtype)),
                      {Of(dtype, {3}, {6, -2, 0.5}), Of(dtype, {3}, {2, 4, 2})},
                      [](Function& fn, const Values& in) {
                        Value a = in[0], b = in[1];
                        return Values{
                            a + b,     a - b,     a * b,     a / b,
                            Max(a, b), Min(a, b), Pow(a, b), fn.Binary(BinaryOp::kRemainder, a, b)};
                      },
                      {{8, 2, 2.5},
                       {4, -6, -1.5},
                       {12, -8, 1},
                       {3, -0.5, 0.25},
                       {6, 4, 2},
                       {2, -2, 0.5},
                       {36, 16, 0.25},
                       {0, -2, 0.5}}});
  }
  for (DType dtype : kInts) {
    cases->push_back({"binary_" + std::string(TorchName(dtype)),
                      {Of(dtype, {2}, {7, 12}), Of(dtype, {2}, {2, 3})},
                      [](Function& fn, const Values& in) {
                        Value a = in[0], b = in[1];
                        return Values{a + b,
                                      a - b,
                                      a * b,
                                      a & b,
                                      a | b,
                                      a ^ b,
                                      Max(a, b),
                                      Min(a, b),
                                      fn.Binary(BinaryOp::kShiftLeft, a, b),
                                      fn.Binary(BinaryOp::kShiftRightArithmetic, a, b),
                                      fn.Binary(BinaryOp::kShiftRightLogical, a, b)};
                      },
                      {{9, 15},
                       {5, 9},
                       {14, 36},
                       {2, 0},
                       {7, 15},
                       {5, 15},
                       {7, 12},
                       {2, 3},
                       {28, 96},
                       {1, 1},
                       {1, 1}}});
    // Apart: 64-bit division takes a TPU half a minute to compile.
    cases->push_back({"divide_" + std::string(TorchName(dtype)),
                      {Of(dtype, {2}, {7, 12}), Of(dtype, {2}, {2, 5})},
                      [](Function& fn, const Values& in) {
                        return Values{in[0] / in[1], fn.Binary(BinaryOp::kRemainder, in[0], in[1]),
                                      Pow(in[1], in[1])};
                      },
                      {{3, 2},
                       {1, 2},
                       {4, dtype == DType::kU8   ? 53.0
                           : dtype == DType::kI8 ? 53.0
                                                 : 3125.0}}});
    if (ItemSize(dtype) == 8) cases->back().not_on_tpu = "64-bit division compiles for 30 s";
  }
  const double low = -std::ldexp(1.0, 63), big = std::ldexp(1.0, 62);
  for (DType dtype : {DType::kI64, DType::kU64}) {
    const bool is_signed = IsSigned(dtype);
    const std::vector<double> a = {7, 0, big, big, 1e15, is_signed ? low : -2 * low - 2048, 5};
    const std::vector<double> b = {2, 3, 3, big, 1e7, is_signed ? -1.0 : 1e6, 0};
    Case c{"divide_emulated_" + std::string(TorchName(dtype)),
           {Of(dtype, {7}, a), Of(dtype, {7}, b)},
           [](Function& fn, const Values& in) {
             fn.Emulate64Bit();
             const Value q = in[0] / in[1], r = fn.Binary(BinaryOp::kRemainder, in[0], in[1]);
             return Values{q * in[1] + r, r};  // the quotients don't fit a double
           },
           {a, {1, 0, 1, 0, 0, is_signed ? 0 : 549568.0, 5}}};
    cases->push_back(std::move(c));
  }
  cases->push_back({"divide_emulated_signs",
                    {Of(DType::kI64, {4}, {7, -7, 7, -7}), Of(DType::kI64, {4}, {2, 2, -2, -2})},
                    [](Function& fn, const Values& in) {
                      fn.Emulate64Bit();
                      return Values{in[0] / in[1], fn.Binary(BinaryOp::kRemainder, in[0], in[1])};
                    },
                    {{3, -3, -3, 3}, {1, -1, 1, -1}}});
  cases->push_back({"binary_bool",
                    {Of(DType::kBool, {4}, {0, 0, 1, 1}), Of(DType::kBool, {4}, {0, 1, 0, 1})},
                    [](Function&, const Values& in) {
                      Value a = in[0], b = in[1];
                      return Values{a & b, a | b, a ^ b, ~a, a + b, a * b, Max(a, b), Min(a, b)};
                    },
                    {{0, 0, 0, 1},
                     {0, 1, 1, 1},
                     {0, 1, 1, 0},
                     {1, 1, 0, 0},
                     {0, 1, 1, 1},
                     {0, 0, 0, 1},
                     {0, 1, 1, 1},
                     {0, 0, 0, 1}}});
  cases->push_back({"binary_math",
                    {F32({2}, {1, 2}), F32({2}, {3, 2})},
                    [](Function& fn, const Values& in) {
                      return Values{fn.Binary(BinaryOp::kAtan2, in[0], in[1]),
                                    fn.Binary(BinaryOp::kNextAfter, in[0], in[1]),
                                    fn.Binary(BinaryOp::kPolygamma, in[0], in[1]),
                                    fn.Binary(BinaryOp::kZeta, in[1], in[0])};
                    },
                    {{0.3217505544, 0.7853981634},
                     {1, 2},
                     {0.3949340668, -0.4041138063},
                     {1.2020569032, 0.6449340668}}});
  for (DType dtype : {DType::kF32, DType::kF64}) {
    cases->push_back(
        {"complex_" + std::string(TorchName(ComplexOf(dtype))),
         {Of(dtype, {1}, {3}), Of(dtype, {1}, {-4})},
         [](Function& fn, const Values& in) {
           Value z = fn.Binary(BinaryOp::kComplex, in[0], in[1]);
           return Values{z,
                         Abs(z),
                         fn.Unary(UnaryOp::kReal, z),
                         fn.Unary(UnaryOp::kImag, z),
                         z * z,
                         z / z,
                         z - 1.0,
                         -z,
                         Pow(z, z),
                         Eq(z, z),
                         Ne(z, z)};
         },
         {{3, -4}, {5}, {3}, {-4}, {-7, -24}, {1, 0}, {2, -4}, {-3, 4}, {}, {1}, {0}}});
  }
  for (DType dtype : kFloat8s) {
    cases->push_back({"float8_" + std::string(TorchName(dtype)),
                      {F32({2}, {2, -4})},
                      [dtype](Function&, const Values& in) {
                        Value x = Convert(in[0], dtype);
                        return Values{Convert(x + x, DType::kF32), Convert(x * x, DType::kF32),
                                      Lt(x, x * 2.0)};
                      },
                      {{4, -8}, {4, 16}, {1, 0}}});
  }
}

void AddOther(std::vector<Case>* cases) {
  for (DType dtype : {DType::kBool, DType::kU8, DType::kI64, DType::kBF16, DType::kF32}) {
    cases->push_back({"compare_" + std::string(TorchName(dtype)),
                      {Of(dtype, {3}, {0, 1, 1}), Of(dtype, {3}, {1, 1, 0})},
                      [](Function&, const Values& in) {
                        Value a = in[0], b = in[1];
                        return Values{Eq(a, b), Ne(a, b), Lt(a, b), Le(a, b), Gt(a, b), Ge(a, b)};
                      },
                      {{0, 1, 0}, {1, 0, 1}, {1, 0, 0}, {1, 1, 0}, {0, 0, 1}, {0, 1, 1}}});
  }
  cases->push_back({"compare_total",
                    {F32({3}, {kNan, -0.0, 1}), F32({3}, {kInf, 0.0, 1})},
                    [](Function& fn, const Values& in) {
                      return Values{fn.CompareTotal(CompareOp::kGt, in[0], in[1]),
                                    fn.CompareTotal(CompareOp::kLt, in[0], in[1]),
                                    fn.CompareTotal(CompareOp::kEq, in[0], in[1])};
                    },
                    {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}});
  cases->push_back({"is_nan",
                    {F32({3}, {kNan, kInf, 1})},
                    [](Function&, const Values& in) { return Values{IsNan(in[0])}; },
                    {{1, 0, 0}}});
  cases->push_back({"select",
                    {Of(DType::kBool, {2}, {1, 0}), F32({2}, {1, 2}), F32({2}, {3, 4})},
                    [](Function& fn, const Values& in) {
                      return Values{fn.Select(in[0], in[1], in[2]),
                                    fn.Select(fn.Scalar(DType::kBool, false), in[1], in[2]),
                                    Select(in[0], in[1], fn.Scalar(DType::kF32, 9))};
                    },
                    {{1, 4}, {3, 4}, {1, 9}}});
  cases->push_back({"clamp",
                    {F32({3}, {-5, 0.5, 5})},
                    [](Function& fn, const Values& in) {
                      Value low = fn.Scalar(DType::kF32, -1), high = Like(in[0], 1);
                      return Values{fn.Clamp(low, in[0], high)};
                    },
                    {{-1, 0.5, 1}}});
  cases->push_back(
      {"convert",
       {F32({3}, {0, 2.75, -3})},
       [](Function&, const Values& in) {
         Value x = in[0];
         return Values{Convert(x, DType::kI32),
                       Convert(x, DType::kBool),
                       Convert(x, DType::kF16),
                       Convert(x, DType::kC64),
                       Convert(Convert(x, DType::kC64), DType::kF64),
                       Convert(Convert(x, DType::kBool), DType::kU8)};
       },
       {{0, 2, -3}, {0, 1, 1}, {0, 2.75, -3}, {0, 0, 2.75, 0, -3, 0}, {0, 2.75, -3}, {0, 1, 1}}});
  cases->push_back({"bitcast",
                    {F32({2}, {1, -2})},
                    [](Function& fn, const Values& in) {
                      Value words = fn.BitcastConvert(in[0], DType::kU32);
                      Value bytes = fn.BitcastConvert(words, DType::kU8);
                      return Values{words, bytes, fn.BitcastConvert(bytes, DType::kF32)};
                    },
                    {{1065353216, 3221225472}, {0, 0, 128, 63, 0, 0, 0, 192}, {1, -2}}});
  cases->push_back({"formula",
                    {F32({2, 1}, {1, 2}), F32({3}, {10, 20, 30})},
                    [](Function&, const Values& in) {
                      Value y = 1.0 + in[0] * in[1] / 2.0 - in[0];
                      return Values{y, Squeeze(Unsqueeze(y, 0), 0)};
                    },
                    {{5, 10, 15, 9, 19, 29}, {5, 10, 15, 9, 19, 29}}});
}

}  // namespace

std::vector<Case> ElementwiseCases() {
  std::vector<Case> cases;
  AddUnary(&cases);
  AddUnaryTypes(&cases);
  AddBinaryTypes(&cases);
  AddBinary(&cases);
  AddOther(&cases);
  return cases;
}

std::vector<Case> ConstantCases() {
  std::vector<Case> cases;
  for (DType dtype : kFloats) {
    cases.push_back({"constant_" + std::string(TorchName(dtype)),
                     {},
                     [dtype](Function& fn, const Values&) {
                       auto one = [&](double x) { return fn.Scalar(dtype, x); };
                       return Values{one(1),     one(-0.15625), one(kNan),   one(kInf),
                                     one(-kInf), one(1e300),    one(-1e300), one(12345678.0)};
                     },
                     {{1},
                      {-0.15625},
                      {kNan},
                      {kInf},
                      {-kInf},
                      {dtype == DType::kF64 ? 1e300 : kInf},
                      {dtype == DType::kF64 ? -1e300 : -kInf},
                      {dtype == DType::kF16    ? kInf
                       : dtype == DType::kBF16 ? 12320768.0
                                               : 12345678.0}}});
  }
  for (DType dtype : kFloat8s) {
    bool has_inf = dtype == DType::kF8E5M2;
    cases.push_back({"constant_" + std::string(TorchName(dtype)),
                     {},
                     [dtype](Function& fn, const Values&) {
                       Values out;
                       for (double x : {1.5, -2.0, kNan, kInf, -kInf}) {
                         out.push_back(Convert(fn.Scalar(dtype, x), DType::kF32));
                       }
                       return out;
                     },
                     {{1.5}, {-2}, {kNan}, {has_inf ? kInf : kNan}, {has_inf ? -kInf : kNan}}});
  }
  for (DType dtype : kInts) {
    double size = std::ldexp(1.0, 8 * static_cast<int>(ItemSize(dtype)));
    bool is_signed = IsSigned(dtype);
    cases.push_back({"constant_" + std::string(TorchName(dtype)),
                     {},
                     [dtype](Function& fn, const Values&) {
                       return Values{fn.Scalar(dtype, -1), fn.Scalar(dtype, 3.0),
                                     fn.Scalar(dtype, true),
                                     fn.Scalar(dtype, std::numeric_limits<int64_t>::min()),
                                     fn.ConstantI64(Dims{1, 2, 3, 4, 5, 6}, {dtype, {3, 2}})};
                     },
                     {{is_signed ? -1 : size - 1},
                      {3},
                      {1},
                      {ItemSize(dtype) < 8 ? 0 : (is_signed ? -size / 2 : size / 2)},
                      {1, 2, 3, 4, 5, 6}}});
  }
  cases.push_back({"constant_others",
                   {},
                   [](Function& fn, const Values&) {
                     return Values{fn.Constant({DType::kBool, {2}}, true),
                                   fn.Scalar(DType::kBool, 0),
                                   fn.Scalar(DType::kC64, std::complex<double>(1.5, -kInf)),
                                   fn.Constant({DType::kC128, {2}}, 0.1),
                                   fn.ConstantI64(Dims{0, 1}, {DType::kBool, {2}}),
                                   fn.Constant({DType::kF32, {0, 3}}, 1.0),
                                   fn.ConstantI64({}, {DType::kI64, {2, 0}})};
                   },
                   {{1, 1}, {0}, {1.5, -kInf}, {0.1, 0, 0.1, 0}, {0, 1}, {}, {}}});
  cases.push_back({"iota",
                   {},
                   [](Function& fn, const Values&) {
                     return Values{fn.Iota({DType::kI64, {2, 3}}, 1),
                                   fn.Iota({DType::kBF16, {2, 2}}, 0),
                                   fn.Iota({DType::kC64, {2}}, 0), fn.Iota({DType::kU8, {3}}, 0)};
                   },
                   {{0, 1, 2, 0, 1, 2}, {0, 0, 1, 1}, {0, 0, 1, 0}, {0, 1, 2}}});
  return cases;
}

}  // namespace tpu::hlo::testing
