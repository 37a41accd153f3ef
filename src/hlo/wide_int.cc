// 64-bit integer division, products and convolutions in narrower pieces, for compilers that take
// minutes over the one and refuse the others (Function::Emulate64Bit). All are exact.
// What it is not: add, multiply, shift or compare in 64 bits; compilers split those well.
#include <algorithm>
#include <array>

#include "hlo/function_impl.h"

namespace tpu::hlo {
namespace {

constexpr double kWord = 4294967296.0;  // 2^32

Value ShiftRight(Value a, int64_t bits) {
  return a.valid() ? a.function()->Binary(BinaryOp::kShiftRightLogical, a, Like(a, bits)) : a;
}
Value ShiftLeft(Value a, int64_t bits) {
  return a.valid() ? a.function()->Binary(BinaryOp::kShiftLeft, a, Like(a, bits)) : a;
}

// ui64 as float32, with a relative error below 2^-22.
Value ToFloat(Value a) {
  const Value high = Convert(Convert(ShiftRight(a, 32), DType::kU32), DType::kF32);
  return high * kWord + Convert(Convert(a, DType::kU32), DType::kF32);
}

// A float32 in [0, 2^64) as ui64, cut. Exact: scaling by 2^32 is.
Value FromFloat(Value x) {
  const Value high = Floor(x * (1.0 / kWord));
  const Value low = x - high * kWord;
  const auto word = [](Value v) { return Convert(Convert(v, DType::kU32), DType::kU64); };
  return ShiftLeft(word(high), 32) | word(low);
}

struct Division {
  Value quotient, remainder;
};

// Of ui64. Each round takes from the remainder what an estimate, never too large, of its quotient
// allows: 2^-19 of it is left at most, so four rounds leave less than three divisors. Division by
// zero gives all ones and the dividend, as XLA does.
Division Divide(Value a, Value b) {
  const Value inverse = (1.0 / ToFloat(b)) * (1.0 - 1.0 / (1 << 20));
  Value quotient, rest = a;
  for (int round = 0; round < 4; ++round) {
    const Value part = FromFloat(ToFloat(rest) * inverse);
    quotient = quotient.valid() ? quotient + part : part;
    rest = rest - part * b;
  }
  for (int step = 0; step < 2; ++step) {
    const Value more = Ge(rest, b);
    quotient = Select(more, quotient + Like(quotient, int64_t{1}), quotient);
    rest = Select(more, rest - b, rest);
  }
  const Value zero = Eq(b, Like(b, int64_t{0}));
  return {Select(zero, ~Like(quotient, int64_t{0}), quotient), Select(zero, a, rest)};
}

Value Magnitude(Value a) {  // of the lowest number: 2^63
  return Convert(Abs(a), DType::kU64);
}

// The free dimensions of a dot's operand: neither batch nor contracting.
Dims Free(Value v, DimsView batch, DimsView contract) {
  Dims out;
  for (int64_t d = 0; d < v.rank(); ++d) {
    if (std::ranges::find(batch, d) == batch.end() &&
        std::ranges::find(contract, d) == contract.end()) {
      out.push_back(d);
    }
  }
  return out;
}

int64_t Product(Value v, DimsView dims) {
  int64_t n = 1;
  for (const int64_t d : dims) n *= v.dim(d);
  return n;
}

// `v` with its dimensions in the order batch, free, contracting, each group as one.
Value AsMatrices(Value v, DimsView batch, DimsView free, DimsView contract) {
  Dims order(batch.begin(), batch.end());
  order.insert(order.end(), free.begin(), free.end());
  order.insert(order.end(), contract.begin(), contract.end());
  Function& fn = *v.function();
  return fn.Reshape(fn.Transpose(v, order),
                    Dims{Product(v, batch), Product(v, free), Product(v, contract)});
}

// The bytes of each element, lowest first, as ui8.
Values Bytes(Value v) {
  Values out;
  for (int64_t i = 0; i < ItemSize(v.dtype()); ++i) {
    out.push_back(Convert(ShiftRight(v, 8 * i) & Like(v, int64_t{255}), DType::kU8));
  }
  return out;
}

// Byte s of a product is the sum over i + j = s: one contraction over bytes laid side by side.
// `count` of them along `dim`, rising or falling.
Value SideBySide(const Values& bytes, size_t count, int64_t dim, bool falling) {
  Values parts(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
  if (falling) std::ranges::reverse(parts);
  return count == 1 || !parts[0].valid() ? parts[0] : parts[0].function()->Concatenate(parts, dim);
}

// Terms of one contraction whose sum stays below 2^32 (for the lowest four bytes of 64-bit numbers;
// above them 32 bits are all that counts).
constexpr int64_t kMaxTerms = (int64_t{1} << 32) / (255 * 255) / 4;

}  // namespace

Value Function::WideDivide(BinaryOp op, Value a, Value b) {
  const bool quotient = op == BinaryOp::kDivide;
  if (IsUnsigned(a.dtype())) {
    const Division d = Divide(a, b);
    return quotient ? d.quotient : d.remainder;
  }
  const Division d = Divide(Magnitude(a), Magnitude(b));
  const Value size = Convert(quotient ? d.quotient : d.remainder, a.dtype());
  const Value zero = Like(a, int64_t{0});
  Value negative = Lt(a, zero);
  if (quotient) negative = (negative ^ Lt(b, zero)) & Ne(b, zero);
  return hlo::Select(negative, -size, size);
}

// On 64-bit and, since they compile in a fraction of the time, on 32-bit integers.
Value Function::WideDot(Value a, Value b, DimsView a_batch, DimsView b_batch, DimsView a_contract,
                        DimsView b_contract, const Type& result) {
  const bool wide = ItemSize(a.dtype()) == 8;
  const DType bits = wide ? DType::kU64 : DType::kU32;
  const Dims a_free = Free(a, a_batch, a_contract), b_free = Free(b, b_batch, b_contract);
  Value x = Convert(AsMatrices(a, a_batch, a_free, a_contract), bits);
  Value y = Convert(AsMatrices(b, b_batch, b_free, b_contract), bits);
  const int64_t batch = x.dim(0), terms = x.dim(2);
  int64_t parts = 1;
  if (wide && terms > kMaxTerms) {  // long contractions in parts, each a batch entry
    parts = (terms + kMaxTerms - 1) / kMaxTerms;
    const auto split = [&](Value v) {
      const Dims none(3, 0), more{0, 0, parts * kMaxTerms - terms};
      v = Pad(v, Scalar(bits, int64_t{0}), none, more, none);
      v = Reshape(v, Dims{batch, v.dim(1), parts, kMaxTerms});
      return Reshape(Transpose(v, Dims{0, 2, 1, 3}), Dims{batch * parts, v.dim(1), kMaxTerms});
    };
    x = split(x);
    y = split(y);
  }
  const Values xs = Bytes(x), ys = Bytes(y);
  Value sum;
  for (size_t s = 0; s < xs.size(); ++s) {
    const Value term = DotGeneral(SideBySide(xs, s + 1, 2, false), SideBySide(ys, s + 1, 2, true),
                                  Dims{0}, Dims{0}, Dims{2}, Dims{2}, DType::kU32);
    const Value shifted = ShiftLeft(hlo::Convert(term, bits), 8 * static_cast<int64_t>(s));
    sum = sum.valid() ? sum + shifted : shifted;
  }
  if (parts > 1) {
    sum = Reshape(sum, Dims{batch, parts, sum.dim(1), sum.dim(2)});
    sum = Reduce(sum, Monoid::kAdd, Dims{1});
  }
  return Reshape(Convert(sum, result.dtype), result.dims);
}

Value Function::WideConvolution(Value input, Value kernel, const ConvDims& dims,
                                std::span<const Window> windows, int64_t feature_groups,
                                const Type& result) {
  int64_t terms = kernel.dim(dims.kernel_input);
  for (const int64_t d : dims.kernel_spatial) terms *= kernel.dim(d);
  const bool wide = ItemSize(input.dtype()) == 8;
  if (wide && terms > kMaxTerms) {
    return Fail(Unimplemented("a convolution of ", TorchName(input.dtype()), " over ", terms,
                              " products for each result on a device without 64-bit integers"));
  }
  const DType bits = wide ? DType::kU64 : DType::kU32;
  // Bytes lie side by side within each group of features.
  const size_t at = static_cast<size_t>(dims.input_feature);
  Dims grouped = input.dims();
  grouped[at] /= feature_groups;
  grouped.insert(grouped.begin() + dims.input_feature, feature_groups);
  const Values xs = Bytes(Reshape(Convert(input, bits), grouped));
  const Values ys = Bytes(Convert(kernel, bits));
  Value sum;
  for (size_t s = 0; s < xs.size(); ++s) {
    Dims flat = input.dims();
    flat[at] *= static_cast<int64_t>(s + 1);
    const Value x = Reshape(SideBySide(xs, s + 1, dims.input_feature + 1, false), flat);
    const Value y = SideBySide(ys, s + 1, dims.kernel_input, true);
    const Value term = Convolution(x, y, dims, windows, feature_groups, 1, DType::kU32);
    const Value shifted = ShiftLeft(hlo::Convert(term, bits), 8 * static_cast<int64_t>(s));
    sum = sum.valid() ? sum + shifted : shifted;
  }
  return Convert(sum, result.dtype);
}

}  // namespace tpu::hlo
