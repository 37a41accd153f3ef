// Fused optimizer steps and the gradient scaler's two ops. A call on lists becomes one call for
// each tensor (`per_tensor`). Hyperparameters are run-time numbers: a learning-rate schedule
// compiles nothing. What it is not: the foreach ops, which PyTorch takes apart itself.
#include "hlo/hlo.h"
#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/op_def.h"

namespace tpu::ops {
namespace {

using hlo::UnaryOp;
using hlo::Value;
using hlo::Values;

// A number, or a tensor of one element in its place, as a scalar.
Value ScalarOf(Lowering& lw, std::string_view name, DType dtype) {
  const Value v = lw.Number(name, dtype);
  return v.valid() && v.rank() > 0 ? lw.fn().Reshape(v, Dims{}) : v;
}

// 1 - x of a number, rounded once: 1 - 0.999 in float32 would lose five digits.
Value OneMinus(Lowering& lw, std::string_view name, DType dtype) {
  return Cast(1.0 - ScalarOf(lw, name, DType::kF64), dtype);
}

// The arguments that all fused optimizers have, for one position of the lists.
class Step {
 public:
  Step(Lowering& lw, Value param, Value grad)
      : lw_(lw), type_(OpMathType(param.dtype())), param_(Cast(param, type_)), old_grad_(grad) {
    grad_ = Cast(grad, type_);
    if (lw.Has("grad_scale")) {
      grad_ = grad_ / ScalarOf(lw, "grad_scale", type_);
      unscaled_ = grad_;
    }
    if (lw.Bool("maximize")) grad_ = -grad_;
    if (lw.Has("found_inf")) skip_ = Eq(ScalarOf(lw, "found_inf", DType::kF32), 1.0);
  }

  DType type() const { return type_; }
  Value param() const { return param_; }
  Value grad() const { return grad_; }
  Value In(Value v) const { return Cast(v, type_); }
  Value Num(std::string_view name) const { return ScalarOf(lw_, name, type_); }
  Value OneMinusNum(std::string_view name) const { return OneMinus(lw_, name, type_); }
  void Decay() { grad_ = grad_ + param_ * Num("weight_decay"); }

  // What a tensor that held `old` holds after the step: nothing changes where the gradients were
  // not finite.
  Value After(Value updated, Value old) const {
    updated = Cast(updated, old.dtype());
    return skip_.valid() ? hlo::Select(skip_, old, updated) : updated;
  }
  // Gradients are stored unscaled, if there is a scale.
  Value GradAfter() const { return unscaled_.valid() ? After(unscaled_, old_grad_) : Value(); }

 private:
  Lowering& lw_;
  const DType type_;
  Value param_, grad_, old_grad_, unscaled_, skip_;
};

// The values a lowering returns: one list for each mutated list argument, in schema order.
Values Join(std::initializer_list<Values> lists) {
  Values out;
  for (const Values& list : lists) out.insert(out.end(), list.begin(), list.end());
  return out;
}

// 1 - beta^step. In float32 by way of 1 - beta, which is exact enough to keep all digits of the
// result; float64 scalars cost seconds of compile on a TPU where they are more than add and
// multiply.
Value BiasCorrection(Lowering& lw, const Step& s, std::string_view beta, Value step) {
  if (s.type() == DType::kF64) return 1.0 - Pow(s.Num(beta), step);
  return -Expm1(step * Log1p(-OneMinus(lw, beta, s.type())));
}

enum class Decay : uint8_t { kCoupled, kDecoupled };

template <Decay decay>
Values Adam(Lowering& lw) {
  const Values params = lw.Tensors("self"), grads = lw.Tensors("grads"),
               averages = lw.Tensors("exp_avgs"), squares = lw.Tensors("exp_avg_sqs"),
               maxima = lw.Tensors("max_exp_avg_sqs"), steps = lw.Tensors("state_steps");
  const bool amsgrad = lw.Bool("amsgrad");
  Values new_params, new_grads, new_averages, new_squares, new_maxima;
  for (size_t i = 0; i < params.size(); ++i) {
    Step s(lw, params[i], grads[i]);
    const Value lr = s.Num("lr");
    Value param = s.param();
    if (decay == Decay::kCoupled) {
      s.Decay();
    } else {
      param = param * (1.0 - lr * s.Num("weight_decay"));
    }
    const Value grad = s.grad(), one_minus_beta1 = s.OneMinusNum("beta1");
    Value average = s.In(averages[i]);
    // As lerp: exact at both ends.
    average = hlo::Select(Lt(one_minus_beta1, 0.5), average + one_minus_beta1 * (grad - average),
                          grad - (grad - average) * s.Num("beta1"));
    const Value square = s.In(squares[i]) * s.Num("beta2") + s.OneMinusNum("beta2") * grad * grad;
    Value largest = square;
    if (amsgrad) largest = Max(s.In(maxima[i]), square);

    const Value step = lw.fn().Reshape(s.In(steps[i]), Dims{});
    const Value step_size = lr / BiasCorrection(lw, s, "beta1", step);
    const Value root = Sqrt(BiasCorrection(lw, s, "beta2", step));
    param = param - step_size * average / (Sqrt(largest) / root + s.Num("eps"));

    new_params.push_back(s.After(param, params[i]));
    new_grads.push_back(s.GradAfter());
    new_averages.push_back(s.After(average, averages[i]));
    new_squares.push_back(s.After(square, squares[i]));
    if (amsgrad) new_maxima.push_back(s.After(largest, maxima[i]));
  }
  new_maxima.resize(maxima.size());
  return Join({new_params, new_grads, new_averages, new_squares, new_maxima});
}

Values Sgd(Lowering& lw) {
  const Values params = lw.Tensors("self"), grads = lw.Tensors("grads");
  const bool first = lw.Bool("is_first_step");  // of buffers that hold nothing yet
  Values buffers;
  if (!first) buffers = lw.Tensors("momentum_buffer_list");
  const bool momentum = lw.NumTensors("momentum_buffer_list") > 0;
  Values new_params, new_grads, new_buffers;
  for (size_t i = 0; i < params.size(); ++i) {
    Step s(lw, params[i], grads[i]);
    s.Decay();
    Value grad = s.grad();
    if (momentum) {
      Value buffer = grad;
      if (!first) {
        buffer = s.In(buffers[i]) * s.Num("momentum") + grad * s.OneMinusNum("dampening");
      }
      grad = lw.Bool("nesterov") ? grad + buffer * s.Num("momentum") : buffer;
      new_buffers.push_back(
          s.After(buffer, first ? lw.fn().Constant(params[i].type(), 0.0) : buffers[i]));
    }
    new_params.push_back(s.After(s.param() - s.Num("lr") * grad, params[i]));
    new_grads.push_back(s.GradAfter());
  }
  return Join({new_params, new_grads, new_buffers});
}

// The schema marks state_steps as written in one overload and not in the other; it never is.
template <bool marks_steps>
Values Adagrad(Lowering& lw) {
  const Values params = lw.Tensors("self"), grads = lw.Tensors("grads"),
               sums = lw.Tensors("state_sums"), steps = lw.Tensors("state_steps");
  Values new_params, new_grads, new_sums;
  for (size_t i = 0; i < params.size(); ++i) {
    Step s(lw, params[i], grads[i]);
    s.Decay();
    const Value step = lw.fn().Reshape(s.In(steps[i]), Dims{});
    const Value rate = s.Num("lr") / ((step - 1.0) * s.Num("lr_decay") + 1.0);
    const Value sum = s.In(sums[i]) + s.grad() * s.grad();
    const Value param = s.param() - rate * s.grad() / (Sqrt(sum) + s.Num("eps"));
    new_params.push_back(s.After(param, params[i]));
    new_grads.push_back(s.GradAfter());
    new_sums.push_back(s.After(sum, sums[i]));
  }
  return Join({new_params, new_grads, new_sums, Values(marks_steps ? steps.size() : 0)});
}

Values CheckAndUnscale(Lowering& lw) {
  const Value inverse = ScalarOf(lw, "inv_scale", DType::kF32);
  Value found = lw.Tensor("found_inf");
  Values out;
  for (const Value grad : lw.Tensors("self")) {
    const DType t = OpMathType(grad.dtype());
    const Value g = Cast(grad, t);
    const Value bad =
        lw.fn().Reduce(~lw.fn().Unary(UnaryOp::kIsFinite, g), hlo::Monoid::kOr, Iota(g.rank()));
    found = hlo::Select(bad, Like(found, 1.0), found);
    out.push_back(Cast(g * Cast(inverse, t), grad.dtype()));
  }
  out.push_back(found);
  return out;
}

Values UpdateScale(Lowering& lw) {
  const Value scale = lw.Tensor("self"), tracker = lw.Tensor("growth_tracker");
  const DType t = scale.dtype();
  const Value found = Ne(lw.fn().Reshape(lw.Tensor("found_inf"), scale.dims()), 0.0);
  const Value count = tracker + 1.0;
  const Value due = Eq(count, static_cast<double>(lw.Int("growth_interval")));
  const Value grown = scale * lw.Number("scale_growth_factor", t);
  const Value due_here = lw.fn().Reshape(due, scale.dims());
  const Value take = due_here & lw.fn().Unary(UnaryOp::kIsFinite, grown);
  const Value shrunk = scale * lw.Number("scale_backoff_factor", t);
  const Value reset = lw.fn().Reshape(found, tracker.dims()) | due;
  return {hlo::Select(found, shrunk, hlo::Select(take, grown, scale)),
          hlo::Select(reset, Like(tracker, int64_t{0}), count)};
}

constexpr OpDef Optimizer(std::string_view name, LowerFn lower) {
  return {.name = name,
          .kind = Kind::kOptim,
          .lower = lower,
          .per_tensor = true,
          .flattens = true,
          .meta = Meta::kInfer};
}

constexpr OpDef kRows[] = {
    Optimizer("aten::_amp_foreach_non_finite_check_and_unscale_", CheckAndUnscale),
    {.name = "aten::_amp_update_scale_",
     .kind = Kind::kOptim,
     .lower = UpdateScale,
     .meta = Meta::kInfer},
    Optimizer("aten::_fused_adagrad_", Adagrad<true>),
    Optimizer("aten::_fused_adagrad_.tensor_lr", Adagrad<false>),
    Optimizer("aten::_fused_adam_", Adam<Decay::kCoupled>),
    Optimizer("aten::_fused_adam_.tensor_lr", Adam<Decay::kCoupled>),
    Optimizer("aten::_fused_adamw_", Adam<Decay::kDecoupled>),
    Optimizer("aten::_fused_adamw_.tensor_lr", Adam<Decay::kDecoupled>),
    Optimizer("aten::_fused_sgd_", Sgd),
    Optimizer("aten::_fused_sgd_.tensor_lr", Sgd),
};

}  // namespace

std::span<const OpDef> OptimOps() { return kRows; }

}  // namespace tpu::ops
