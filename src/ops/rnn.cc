// The pointwise halves of LSTM and GRU cells, fused, and their gradients. PyTorch sends LSTMCell,
// GRUCell, and through them nn.LSTM and nn.GRU on this device here; the products are mm and addmm.
// What it is not: whole recurrent layers.
#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/rows.h"

namespace tpu::ops {
namespace {

using hlo::Value;
using hlo::Values;

// Gate `i` of `n` side by side in the last dimension.
Value Gate(Value gates, int64_t i, int64_t n) {
  if (!gates.valid()) return {};
  const auto rank = static_cast<size_t>(gates.rank());
  const int64_t width = gates.dim(gates.rank() - 1) / n;
  Dims starts(rank, 0), limits = gates.dims();
  starts.back() = i * width;
  limits.back() = (i + 1) * width;
  return gates.function()->Slice(gates, starts, limits, Dims(rank, 1));
}

Value Join(const Values& gates) {
  return gates[0].valid() ? gates[0].function()->Concatenate(gates, gates[0].rank() - 1) : Value();
}

// In the type of computation; invalid where the argument is None.
Value Optional(Lowering& lw, std::string_view name, DType math) {
  return lw.Has(name) ? lw.TensorAs(name, math) : Value();
}

Value OrAdded(Value a, Value b) { return b.valid() ? a + b : a; }

Values Rounded(Values values, DType t) {
  for (Value& v : values) v = Cast(v, t);
  return values;
}

bool Fits(Lowering& lw, std::string_view gates, std::string_view state, int64_t n) {
  const Dims g = lw.TensorDims(gates), s = lw.TensorDims(state);
  if (g.size() == 2 && s.size() == 2 && g[0] == s[0] && g[1] == n * s[1]) return true;
  lw.Fail(
      InvalidArgument("gates of sizes ", ToString(g), " don't fit a state of sizes ", ToString(s)));
  return false;
}

Values LstmCell(Lowering& lw) {
  if (!Fits(lw, "input_gates", "cx", 4)) return Values(3);
  const DType t = lw.TensorType("cx"), math = OpMathType(t);
  Value sum = lw.TensorAs("input_gates", math) + lw.TensorAs("hidden_gates", math);
  sum = OrAdded(OrAdded(sum, Optional(lw, "input_bias", math)), Optional(lw, "hidden_bias", math));
  const Value in = Logistic(Gate(sum, 0, 4)), forget = Logistic(Gate(sum, 1, 4)),
              cell = Tanh(Gate(sum, 2, 4)), out = Logistic(Gate(sum, 3, 4));
  const Value cy = forget * lw.TensorAs("cx", math) + in * cell;
  return Rounded({out * Tanh(cy), cy, Join({in, forget, cell, out})}, t);
}

Values LstmCellBackward(Lowering& lw) {
  if (!lw.Has("grad_hy") && !lw.Has("grad_cy")) return Values(3);
  if (!Fits(lw, "workspace", "cx", 4)) return Values(3);
  const DType t = lw.TensorType("workspace"), math = OpMathType(t);
  const Value gates = lw.TensorAs("workspace", math), cx = lw.TensorAs("cx", math),
              squashed = Tanh(lw.TensorAs("cy", math));
  const Value in = Gate(gates, 0, 4), forget = Gate(gates, 1, 4), cell = Gate(gates, 2, 4),
              out = Gate(gates, 3, 4);
  const Value grad_hy = Optional(lw, "grad_hy", math);
  Value grad_cell = Optional(lw, "grad_cy", math);
  Value grad_out = Like(out, 0.0);
  if (grad_hy.valid()) {
    grad_cell = OrAdded(grad_hy * out * (1.0 - squashed * squashed), grad_cell);
    grad_out = grad_hy * squashed * (1.0 - out) * out;
  }
  const Value grad_gates =
      Join({grad_cell * cell * (1.0 - in) * in, grad_cell * cx * (1.0 - forget) * forget,
            grad_cell * in * (1.0 - cell * cell), grad_out});
  Value grad_bias;
  if (lw.Bool("has_bias")) grad_bias = lw.fn().Reduce(grad_gates, hlo::Monoid::kAdd, Dims{0});
  return Rounded({grad_gates, grad_cell * forget, grad_bias}, t);
}

Values GruCell(Lowering& lw) {
  if (!Fits(lw, "input_gates", "hx", 3)) return Values(2);
  const DType t = lw.TensorType("hx"), math = OpMathType(t);
  const Value from_input =
      OrAdded(lw.TensorAs("input_gates", math), Optional(lw, "input_bias", math));
  const Value from_hidden =
      OrAdded(lw.TensorAs("hidden_gates", math), Optional(lw, "hidden_bias", math));
  const Value hx = lw.TensorAs("hx", math);
  const Value reset = Logistic(Gate(from_input, 0, 3) + Gate(from_hidden, 0, 3)),
              update = Logistic(Gate(from_input, 1, 3) + Gate(from_hidden, 1, 3)),
              hidden = Gate(from_hidden, 2, 3),
              fresh = Tanh(Gate(from_input, 2, 3) + reset * hidden);
  return Rounded({fresh + update * (hx - fresh), Join({reset, update, fresh, hx, hidden})}, t);
}

Values GruCellBackward(Lowering& lw) {
  if (!Fits(lw, "workspace", "grad_hy", 5)) return Values(5);
  const DType t = lw.TensorType("grad_hy"), math = OpMathType(t);
  const Value gates = lw.TensorAs("workspace", math), grad = lw.TensorAs("grad_hy", math);
  const Value reset = Gate(gates, 0, 5), update = Gate(gates, 1, 5), fresh = Gate(gates, 2, 5),
              hx = Gate(gates, 3, 5), hidden = Gate(gates, 4, 5);
  const Value grad_update = grad * (hx - fresh) * (1.0 - update) * update,
              grad_fresh = grad * (1.0 - update) * (1.0 - fresh * fresh),
              grad_reset = grad_fresh * hidden * (1.0 - reset) * reset;
  const Value grad_input = Join({grad_reset, grad_update, grad_fresh}),
              grad_hidden = Join({grad_reset, grad_update, grad_fresh * reset});
  Value input_bias, hidden_bias;
  if (lw.Bool("has_bias")) {
    input_bias = lw.fn().Reduce(grad_input, hlo::Monoid::kAdd, Dims{0});
    hidden_bias = lw.fn().Reduce(grad_hidden, hlo::Monoid::kAdd, Dims{0});
  }
  return Rounded({grad_input, grad_hidden, grad * update, input_bias, hidden_bias}, t);
}

constexpr OpDef Row(std::string_view name, LowerFn lower, Meta meta) {
  return {.name = name, .kind = Kind::kRnn, .lower = lower, .meta = meta};
}

constexpr OpDef kRows[] = {
    Row("aten::_thnn_fused_gru_cell", GruCell, Meta::kInfer),
    Row("aten::_thnn_fused_gru_cell_backward", GruCellBackward, Meta::kInfer),
    // PyTorch 2.13's meta kernel fails where there are no biases.
    Row("aten::_thnn_fused_lstm_cell", LstmCell, Meta::kInfer),
    Row("aten::_thnn_fused_lstm_cell_backward_impl", LstmCellBackward, Meta::kOwn),
};

}  // namespace

std::span<const OpDef> RnnOps() { return kRows; }

}  // namespace tpu::ops
