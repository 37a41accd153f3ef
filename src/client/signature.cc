// Reads "@main(%a: tensor<2x3xf32> {attributes}, ...)".
#include "client/signature.h"

#include <charconv>

namespace tpu {
namespace {

// The types in "tensor<...": sizes, each followed by 'x', then the element type and '>'.
Result<hlo::Type> ParseTensor(std::string_view text) {
  const std::string_view all = text.substr(0, text.find('\n'));
  hlo::Type type;
  for (;;) {
    int64_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || end == text.data() + text.size() || *end != 'x') break;
    type.dims.push_back(size);
    text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
  }
  for (int i = 1; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    const std::string_view name = MlirName(dtype);
    if (text.starts_with(name) && text.substr(name.size()).starts_with('>')) {
      type.dtype = dtype;
      return type;
    }
  }
  return InvalidArgument("a parameter of @main has a type that is not supported: tensor<",
                         all.substr(0, 40));
}

}  // namespace

Result<std::vector<hlo::Type>> ParameterTypes(std::string_view stablehlo) {
  constexpr std::string_view kMain = "@main(", kTensor = "tensor<";
  const size_t main = stablehlo.find(kMain);
  if (main == std::string_view::npos) return InvalidArgument("the module has no function @main");
  std::vector<hlo::Type> out;
  int depth = 1;
  bool quoted = false;  // attributes may hold any text in quotes
  for (size_t i = main + kMain.size(); i < stablehlo.size() && depth > 0; ++i) {
    const char c = stablehlo[i];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '(' || c == '{') ++depth;
    if (c == ')' || c == '}') --depth;
    if (depth == 1 && stablehlo.substr(i).starts_with(kTensor)) {
      TPU_ASSIGN_OR_RETURN(hlo::Type type, ParseTensor(stablehlo.substr(i + kTensor.size())));
      out.push_back(std::move(type));
    }
  }
  if (depth > 0) return InvalidArgument("the parameter list of @main does not end");
  return out;
}

}  // namespace tpu
