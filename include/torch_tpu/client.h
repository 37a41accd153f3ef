// The public C++ interface: compile StableHLO text and run it on the device of this process, with
// no PyTorch and no Python. Arrays live on the device; programs come from memory, from the cache on
// disk or from the compiler. torch_tpu/hlo.h has the builder that writes the text. What it is not:
// the op table or eager execution of PyTorch operators.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "shape/dims.h"
#include "shape/dtype.h"

namespace tpu {

// The element type that a C++ type stands for. bool has none: std::vector<bool> has no array of
// them.
template <class T>
inline constexpr DType kDTypeOf = DType::kInvalid;
template <>
inline constexpr DType kDTypeOf<float> = DType::kF32;
template <>
inline constexpr DType kDTypeOf<double> = DType::kF64;
template <>
inline constexpr DType kDTypeOf<int8_t> = DType::kI8;
template <>
inline constexpr DType kDTypeOf<int16_t> = DType::kI16;
template <>
inline constexpr DType kDTypeOf<int32_t> = DType::kI32;
template <>
inline constexpr DType kDTypeOf<int64_t> = DType::kI64;
template <>
inline constexpr DType kDTypeOf<uint8_t> = DType::kU8;
template <>
inline constexpr DType kDTypeOf<uint16_t> = DType::kU16;
template <>
inline constexpr DType kDTypeOf<uint32_t> = DType::kU32;
template <>
inline constexpr DType kDTypeOf<uint64_t> = DType::kU64;

// An immutable tensor on a device, in row-major order. Cheap to copy: copies share the memory,
// which is freed with the last of them.
class Array {
 public:
  Array() = default;
  bool valid() const { return rep_ != nullptr; }
  DType dtype() const;
  const Dims& dims() const;
  int device() const;

  // Waits for the array and copies it. kInvalidArgument unless `bytes` is the array's size.
  Status CopyToHost(void* dst, size_t bytes) const;
  // The same as a vector; kInvalidArgument where T is another element type.
  template <class T>
  Result<std::vector<T>> ToHost() const {
    if (!valid() || dtype() != kDTypeOf<T>) return WrongType(kDTypeOf<T>);
    std::vector<T> out(static_cast<size_t>(NumElements(dims())));
    TPU_RETURN_IF_ERROR(CopyToHost(out.data(), out.size() * sizeof(T)));
    return out;
  }

 private:
  friend class Client;
  friend class Program;
  struct Rep;
  Status WrongType(DType wanted) const;
  // Shared because copies of an array are one tensor.
  std::shared_ptr<const Rep> rep_;
};

// A compiled program. Cheap to copy.
class Program {
 public:
  Program() = default;
  // Runs the program on the device of its first argument (device 0 if it has none). Returns when
  // the work is queued; Array::CopyToHost waits. Arguments are checked against the program's types.
  Result<std::vector<Array>> Run(std::span<const Array> arguments) const;
  Result<std::vector<Array>> Run(std::initializer_list<Array> arguments) const {
    return Run(std::span<const Array>(arguments.begin(), arguments.size()));
  }
  const std::string& text() const;

 private:
  friend class Client;
  struct Rep;
  std::shared_ptr<const Rep> rep_;  // shared by copies
};

struct ClientOptions {
  // As the environment variable TORCH_TPU_PLUGIN, which it overrides: "tpu", "cpu", or the path of
  // a PJRT plugin. Empty: a TPU if there is one, else a CPU plugin package.
  std::string plugin;
  // Folders to look for plugin packages in (Python's site-packages).
  std::vector<std::string> search_dirs;
};

// The devices of this process. The first Create starts the plugin; later ones share it.
class Client {
 public:
  static Result<Client> Create(const ClientOptions& options = {});

  std::string platform() const;  // "cpu", "tpu"
  int num_devices() const;

  // Compiles a module with one function @main. Waits for the compiler.
  Result<Program> Compile(std::string_view stablehlo) const;

  // Copies `data`, in row-major order, to a device.
  Result<Array> Put(const void* data, DType dtype, Dims dims, int device = 0) const;
  // The same; kInvalidArgument unless `values` has as many elements as `dims` ask.
  template <class T>
  Result<Array> Put(const std::vector<T>& values, Dims dims, int device = 0) const {
    static_assert(kDTypeOf<T> != DType::kInvalid, "no element type stands for this C++ type");
    if (NumElements(dims) != static_cast<int64_t>(values.size())) {
      return InvalidArgument(values.size(), " values for the shape ", ToString(dims));
    }
    return Put(values.data(), kDTypeOf<T>, std::move(dims), device);
  }

 private:
  Client() = default;
};

}  // namespace tpu
