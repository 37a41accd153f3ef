// Buffer: device memory with a shape.
#include <array>

#include "pjrt/call.h"
#include "pjrt/element_type.h"
#include "pjrt/pjrt.h"

namespace tpu::pjrt {
namespace {

constexpr size_t kMaxRank = 64;  // PyTorch's limit

struct TypePair {
  DType dtype;
  abi::BufferType type;
};
constexpr TypePair kTypes[] = {
    {DType::kBool, abi::BufferType::kPred},
    {DType::kU8, abi::BufferType::kU8},
    {DType::kU16, abi::BufferType::kU16},
    {DType::kU32, abi::BufferType::kU32},
    {DType::kU64, abi::BufferType::kU64},
    {DType::kI8, abi::BufferType::kS8},
    {DType::kI16, abi::BufferType::kS16},
    {DType::kI32, abi::BufferType::kS32},
    {DType::kI64, abi::BufferType::kS64},
    {DType::kF8E4M3FN, abi::BufferType::kF8E4M3FN},
    {DType::kF8E5M2, abi::BufferType::kF8E5M2},
    {DType::kF8E4M3FNUZ, abi::BufferType::kF8E4M3FNUZ},
    {DType::kF8E5M2FNUZ, abi::BufferType::kF8E5M2FNUZ},
    {DType::kF16, abi::BufferType::kF16},
    {DType::kBF16, abi::BufferType::kBF16},
    {DType::kF32, abi::BufferType::kF32},
    {DType::kF64, abi::BufferType::kF64},
    {DType::kC64, abi::BufferType::kC64},
    {DType::kC128, abi::BufferType::kC128},
};
static_assert(std::size(kTypes) == static_cast<size_t>(kNumDTypes) - 1);

void Destroy(const PJRT_Api* api, PJRT_Buffer* buffer) {
  if (buffer == nullptr) return;
  abi::BufferDestroyArgs args{.buffer = buffer};
  CallIgnoringErrors<&abi::Table::Buffer_Destroy>(api, &args);
}

Status NoBuffer() { return InvalidArgument("the buffer handle is empty"); }

}  // namespace

abi::BufferType ToAbi(DType dtype) {
  // The table is in the order of DType, which the buffer tests hold to.
  const auto i = static_cast<size_t>(dtype);
  return i == 0 || i > std::size(kTypes) ? abi::BufferType::kInvalid : kTypes[i - 1].type;
}

std::optional<DType> FromAbi(abi::BufferType type) {
  for (const TypePair& pair : kTypes) {
    if (pair.type == type) return pair.dtype;
  }
  return std::nullopt;
}

Buffer::Buffer(Buffer&& other) noexcept
    : api_(other.api_), buffer_(std::exchange(other.buffer_, nullptr)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    Destroy(api_, buffer_);
    api_ = other.api_;
    buffer_ = std::exchange(other.buffer_, nullptr);
  }
  return *this;
}

Buffer::~Buffer() { Destroy(api_, buffer_); }

void Buffer::Delete() {
  if (buffer_ == nullptr) return;
  abi::BufferDeleteArgs args{.buffer = buffer_};
  CallIgnoringErrors<&abi::Table::Buffer_Delete>(api_, &args);
}

Result<Event> Buffer::ReadyEvent() const {
  if (buffer_ == nullptr) return NoBuffer();
  abi::BufferReadyEventArgs args{.buffer = buffer_};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Buffer_ReadyEvent>(api_, &args));
  return Event(api_, args.event);
}

Status Buffer::Await() const {
  TPU_ASSIGN_OR_RETURN(Event event, ReadyEvent());
  return event.Await();
}

bool Buffer::IsDeleted() const {
  if (buffer_ == nullptr) return true;
  abi::BufferIsDeletedArgs args{.buffer = buffer_};
  return !Call<&abi::Table::Buffer_IsDeleted>(api_, &args).ok() || args.is_deleted;
}

Result<std::pair<DType, Dims>> Buffer::Shape() const {
  if (buffer_ == nullptr) return NoBuffer();
  abi::BufferElementTypeArgs type{.buffer = buffer_};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Buffer_ElementType>(api_, &type));
  std::optional<DType> dtype = FromAbi(type.type);
  if (!dtype) {
    return Unimplemented("PJRT element type ", static_cast<int>(type.type), " has no dtype");
  }
  abi::BufferDimensionsArgs dims{.buffer = buffer_};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Buffer_Dimensions>(api_, &dims));
  return std::pair(*dtype, Dims(dims.dims, dims.dims + dims.num_dims));
}

Result<int64_t> Buffer::OnDeviceBytes() const {
  if (buffer_ == nullptr) return NoBuffer();
  abi::BufferOnDeviceSizeInBytesArgs args{.buffer = buffer_};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Buffer_OnDeviceSizeInBytes>(api_, &args));
  return static_cast<int64_t>(args.on_device_size_in_bytes);
}

Result<const void*> Buffer::HostPointer() const {
  if (buffer_ == nullptr) return NoBuffer();
  // Elsewhere the pointer is a device address, which must not be read.
  abi::BufferIsOnCpuArgs on_cpu{.buffer = buffer_};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Buffer_IsOnCpu>(api_, &on_cpu));
  if (!on_cpu.is_on_cpu) {
    return Unimplemented("the device's memory is not addressable by the host");
  }
  abi::BufferOpaqueDeviceMemoryDataPointerArgs args{.buffer = buffer_};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Buffer_OpaqueDeviceMemoryDataPointer>(api_, &args));
  return static_cast<const void*>(args.device_memory_ptr);
}

Result<Event> Buffer::ToHost(void* dst, size_t bytes) const {
  if (buffer_ == nullptr) return NoBuffer();
  // A null destination would make the call a size query that gives no event.
  if (dst == nullptr) return InvalidArgument("ToHost needs a destination");
  abi::BufferDimensionsArgs dims{.buffer = buffer_};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Buffer_Dimensions>(api_, &dims));
  if (dims.num_dims > kMaxRank) return InvalidArgument("rank ", dims.num_dims, " is over 64");
  // Without an explicit layout the bytes come in the device's own dimension order.
  std::array<int64_t, kMaxRank> minor_to_major;
  for (size_t i = 0; i < dims.num_dims; ++i) {
    minor_to_major[i] = static_cast<int64_t>(dims.num_dims - 1 - i);
  }
  abi::MemoryLayout layout;
  layout.tiled.minor_to_major = minor_to_major.data();
  layout.tiled.minor_to_major_size = dims.num_dims;
  abi::BufferToHostBufferArgs args{
      .src = buffer_, .host_layout = &layout, .dst = dst, .dst_size = bytes};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Buffer_ToHostBuffer>(api_, &args));
  return Event(api_, args.event);
}

Result<Buffer> Buffer::CopyToDevice(PJRT_Device* device) const {
  if (buffer_ == nullptr) return NoBuffer();
  if (device == nullptr) return InvalidArgument("CopyToDevice needs a device");
  abi::BufferCopyToDeviceArgs args{.buffer = buffer_, .dst_device = device};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Buffer_CopyToDevice>(api_, &args));
  return Buffer(api_, args.dst_buffer);
}

}  // namespace tpu::pjrt
