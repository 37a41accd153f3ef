// Builds a small function, prints its StableHLO text, compiles it and runs it.
#include <cstdlib>
#include <iostream>

#include "torch_tpu/client.h"
#include "torch_tpu/hlo.h"

// Takes the value out of a Result, or ends the program with its error.
template <class T>
T Check(tpu::Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::cerr << result.status().ToString() << "\n";
  std::exit(1);
}

int main() {
  tpu::hlo::Function f;
  tpu::hlo::Value x = f.Parameter({tpu::DType::kF32, {2, 2}});
  tpu::hlo::Value y = f.Parameter({tpu::DType::kF32, {2}});
  std::string text = Check(f.Finish({Tanh(x) + 2.0 * y}));
  std::cout << text;

  tpu::Client client = Check(tpu::Client::Create());
  tpu::Program program = Check(client.Compile(text));
  tpu::Array a = Check(client.Put<float>({0, 1, 2, 3}, {2, 2}));
  tpu::Array b = Check(client.Put<float>({10, 20}, {2}));
  std::vector<tpu::Array> results = Check(program.Run({a, b}));
  for (float v : Check(results[0].ToHost<float>())) std::cout << v << " ";
  std::cout << "on " << client.platform() << "\n";
}
