// Matrix products and convolutions.
#include <algorithm>

#include "hlo/function_impl.h"

namespace tpu::hlo {
namespace {

// Halves and integers have one precision only.
void AddPrecision(Attributes* attributes, DType dtype, Precision precision) {
  if (precision == Precision::kDefault || !Contains(kFpSet, dtype)) return;
  if (IsHalf(dtype) || IsF8(dtype)) return;
  std::string one = precision == Precision::kHigh ? "#stablehlo<precision HIGH>"
                                                  : "#stablehlo<precision HIGHEST>";
  attributes->Text("precision_config", "[" + one + ", " + one + "]");
}

bool IsWideInteger(DType dtype) { return IsInteger(dtype) && ItemSize(dtype) >= 4; }

Dims Joined(DimsView a, DimsView b) {
  Dims all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

// "[b, f, 0, 1]": the role of each dimension.
std::string Roles(int64_t first, char first_role, int64_t second, char second_role,
                  const Dims& spatial) {
  std::vector<std::string> roles(spatial.size() + 2);
  roles[static_cast<size_t>(first)] = first_role;
  roles[static_cast<size_t>(second)] = second_role;
  for (size_t i = 0; i < spatial.size(); ++i) {
    roles[static_cast<size_t>(spatial[i])] = std::to_string(i);
  }
  std::string out;
  for (const std::string& role : roles) out += (out.empty() ? "[" : ", ") + role;
  return out + "]";
}

std::string ReversalText(std::span<const Window> windows) {
  std::string out;
  for (const Window& window : windows) {
    out += out.empty() ? "array<i1: " : ", ";
    out += window.reversed ? "true" : "false";
  }
  return out.empty() ? "array<i1>" : out + ">";
}

std::string CheckGroups(Value input, Value kernel, const ConvDims& dims, int64_t feature_groups,
                        int64_t batch_groups) {
  if (feature_groups < 1 || batch_groups < 1 || (feature_groups > 1 && batch_groups > 1)) {
    return "feature groups and batch groups must be positive, and one of them 1";
  }
  int64_t features = input.dim(dims.input_feature), outputs = kernel.dim(dims.kernel_output);
  if (features % feature_groups != 0 || outputs % feature_groups != 0 ||
      features / feature_groups != kernel.dim(dims.kernel_input)) {
    return std::to_string(features) + " input features, " +
           std::to_string(kernel.dim(dims.kernel_input)) + " of the kernel, " +
           std::to_string(outputs) + " outputs and " + std::to_string(feature_groups) +
           " groups don't fit";
  }
  if (input.dim(dims.input_batch) % batch_groups != 0 || outputs % batch_groups != 0) {
    return "the batch or the outputs don't divide into " + std::to_string(batch_groups) + " groups";
  }
  return {};
}

}  // namespace

Value Function::DotGeneral(Value a, Value b, DimsView a_batch, DimsView b_batch,
                           DimsView a_contract, DimsView b_contract, DType dtype,
                           Precision precision) {
  constexpr std::string_view kName = "stablehlo.dot_general";
  if (!impl_->Accepts(kName, {a, b})) return {};
  if (a.dtype() != b.dtype()) {
    return impl_->Error(kName, "operands differ in dtype: ", ToString(a.type()), " and ",
                        ToString(b.type()));
  }
  Dims a_used = Joined(a_batch, a_contract), b_used = Joined(b_batch, b_contract);
  if (!impl_->AreDims(kName, "batch and contracting dimensions", a_used, a.rank()) ||
      !impl_->AreDims(kName, "batch and contracting dimensions", b_used, b.rank())) {
    return {};
  }
  bool fits = a_batch.size() == b_batch.size() && a_used.size() == b_used.size();
  for (size_t i = 0; fits && i < a_used.size(); ++i) fits = a.dim(a_used[i]) == b.dim(b_used[i]);
  if (!fits) {
    return impl_->Error(kName, ToString(a.type()), " and ", ToString(b.type()),
                        " don't fit: batch ", ToString(a_batch), " and ", ToString(b_batch),
                        ", contracting ", ToString(a_contract), " and ", ToString(b_contract));
  }
  Type result{dtype == DType::kInvalid ? a.dtype() : dtype, {}};
  for (int64_t d : a_batch) result.dims.push_back(a.dim(d));
  auto add_free = [&](Value operand, const Dims& used) {
    for (int64_t i = 0; i < operand.rank(); ++i) {
      if (std::find(used.begin(), used.end(), i) == used.end()) {
        result.dims.push_back(operand.dim(i));
      }
    }
  };
  add_free(a, a_used);
  add_free(b, b_used);
  if (impl_->emulate_64bit && IsWideInteger(a.dtype()) && result.dtype == a.dtype()) {
    return WideDot(a, b, a_batch, b_batch, a_contract, b_contract, result);
  }
  Attributes attributes;
  attributes.Text("dot_dimension_numbers",
                  "#stablehlo.dot<lhs_batching_dimensions = " + ListText(a_batch) +
                      ", rhs_batching_dimensions = " + ListText(b_batch) +
                      ", lhs_contracting_dimensions = " + ListText(a_contract) +
                      ", rhs_contracting_dimensions = " + ListText(b_contract) + ">");
  AddPrecision(&attributes, a.dtype(), precision);
  return impl_->EmitOne({kName, {a, b}, {result}, attributes});
}

Value Function::Convolution(Value input, Value kernel, const ConvDims& dims,
                            std::span<const Window> windows, int64_t feature_groups,
                            int64_t batch_groups, DType dtype, Precision precision) {
  constexpr std::string_view kName = "stablehlo.convolution";
  if (!impl_->Accepts(kName, {input, kernel})) return {};
  int64_t rank = input.rank();
  size_t n = windows.size();
  if (input.dtype() != kernel.dtype() || kernel.rank() != rank ||
      rank != static_cast<int64_t>(n) + 2 || dims.input_spatial.size() != n ||
      dims.kernel_spatial.size() != n || dims.output_spatial.size() != n) {
    return impl_->Error(kName, "input ", ToString(input.type()), " and kernel ",
                        ToString(kernel.type()), " with ", n, " windows");
  }
  auto is_layout = [&](int64_t first, int64_t second, const Dims& spatial) {
    return impl_->AreDims(kName, "dimensions", Joined(Dims{first, second}, spatial), rank);
  };
  if (!is_layout(dims.input_batch, dims.input_feature, dims.input_spatial) ||
      !is_layout(dims.kernel_input, dims.kernel_output, dims.kernel_spatial) ||
      !is_layout(dims.output_batch, dims.output_feature, dims.output_spatial)) {
    return {};
  }
  std::string wrong = CheckGroups(input, kernel, dims, feature_groups, batch_groups);
  Type result{dtype == DType::kInvalid ? input.dtype() : dtype, Dims(static_cast<size_t>(rank))};
  for (size_t i = 0; wrong.empty() && i < n; ++i) {
    Window window = windows[i];
    window.size = kernel.dim(dims.kernel_spatial[i]);
    wrong = CheckWindows(Dims{0}, {&window, 1});
    result.dims[static_cast<size_t>(dims.output_spatial[i])] =
        wrong.empty() ? WindowedSize(input.dim(dims.input_spatial[i]), window) : 0;
  }
  if (!wrong.empty()) {
    return impl_->Error(kName, wrong, ": input ", ToString(input.type()), ", kernel ",
                        ToString(kernel.type()));
  }
  result.dims[static_cast<size_t>(dims.output_batch)] = input.dim(dims.input_batch) / batch_groups;
  result.dims[static_cast<size_t>(dims.output_feature)] = kernel.dim(dims.kernel_output);
  if (impl_->emulate_64bit && IsWideInteger(input.dtype()) && result.dtype == input.dtype() &&
      batch_groups == 1) {
    return WideConvolution(input, kernel, dims, windows, feature_groups, result);
  }
  Attributes attributes;
  attributes.Windows("window_strides", windows, &Window::stride)
      .Padding("padding", windows)
      .Windows("lhs_dilation", windows, &Window::base_dilation)
      .Windows("rhs_dilation", windows, &Window::window_dilation)
      .Text("window_reversal", ReversalText(windows))
      .Text("dimension_numbers",
            "#stablehlo.conv<" +
                Roles(dims.input_batch, 'b', dims.input_feature, 'f', dims.input_spatial) + "x" +
                Roles(dims.kernel_output, 'o', dims.kernel_input, 'i', dims.kernel_spatial) + "->" +
                Roles(dims.output_batch, 'b', dims.output_feature, 'f', dims.output_spatial) + ">")
      .I64("feature_group_count", feature_groups)
      .I64("batch_group_count", batch_groups);
  AddPrecision(&attributes, input.dtype(), precision);
  return impl_->EmitOne({kName, {input, kernel}, {result}, attributes});
}

}  // namespace tpu::hlo
