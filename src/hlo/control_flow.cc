// Loops, branches, custom calls and barriers.
#include "hlo/function_impl.h"

namespace tpu::hlo {
namespace {

std::vector<Type> TypesOf(const Values& values) {
  std::vector<Type> types;
  for (const Value& value : values) types.push_back(value.type());
  return types;
}

}  // namespace

Values Function::While(const Values& inits, const Body& condition, const Body& body) {
  constexpr std::string_view kName = "stablehlo.while";
  size_t n = inits.size();
  if (!impl_->Accepts(kName, inits)) return Values(n);
  if (n == 0) return impl_->Errors(n, kName, "carries no values");
  std::vector<Type> types = TypesOf(inits);
  Region test = impl_->Build(kName, types, condition, false, {{DType::kBool, {}}});
  if (!test.ok) return Values(n);
  Region step = impl_->Build(kName, types, body, false, types);
  if (!step.ok) return Values(n);
  return impl_->Emit(
      {kName, inits, types, Attributes(), {std::move(test.text), std::move(step.text)}});
}

Values Function::If(Value pred, const std::function<Values()>& then,
                    const std::function<Values()>& otherwise) {
  constexpr std::string_view kName = "stablehlo.if";
  if (impl_->Accepts(kName, {pred}) && pred.type() != Type{DType::kBool, {}}) {
    impl_->Error(kName, "the predicate must be a bool scalar, not ", ToString(pred.type()));
  }
  // Run even after an error: only it knows how many results the caller will index.
  Region yes = impl_->Build(kName, {}, [&](Function&, const Values&) { return then(); }, false);
  if (!yes.ok) return Values(yes.results.size());
  Region no = impl_->Build(
      kName, {}, [&](Function&, const Values&) { return otherwise(); }, false, yes.results);
  if (!no.ok) return Values(yes.results.size());
  return impl_->Emit(
      {kName, {pred}, yes.results, Attributes(), {std::move(yes.text), std::move(no.text)}});
}

Values Function::CustomCall(std::string_view target, const Values& operands,
                            std::span<const Type> results, std::string_view backend_config,
                            bool has_side_effect, int api_version) {
  constexpr std::string_view kName = "stablehlo.custom_call";
  if (!impl_->Accepts(kName, operands)) return Values(results.size());
  Attributes attributes;
  attributes.String("call_target_name", target)
      .Bool("has_side_effect", has_side_effect)
      .Text("api_version", std::to_string(api_version) + " : i32");
  if (api_version == 4) {
    attributes.Text("backend_config", backend_config.empty() ? "{}" : backend_config);
  } else if (!backend_config.empty()) {
    attributes.String("backend_config", backend_config);
  }
  return impl_->Emit(
      {kName, operands, std::vector<Type>(results.begin(), results.end()), std::move(attributes)});
}

Values Function::OptimizationBarrier(const Values& values) {
  constexpr std::string_view kName = "stablehlo.optimization_barrier";
  if (!impl_->Accepts(kName, values)) return Values(values.size());
  if (values.empty()) return {};
  return impl_->Emit({kName, values, TypesOf(values)});
}

}  // namespace tpu::hlo
