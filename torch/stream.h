// Streams and events. A device runs calls in the order in which they are made, so a stream is an id
// with an honest order: everything on every stream of a device is in one line, and waiting for an
// event of the same device holds already.
#pragma once

#include <c10/core/Stream.h>

#include <memory>

namespace tpu::torch_layer {

c10::Stream DefaultStream(c10::DeviceIndex index);
c10::Stream CurrentStream(c10::DeviceIndex index);
c10::Stream NewStream(c10::DeviceIndex index, int priority);
c10::Stream ExchangeStream(c10::Stream stream);

// An event: the point in the device's order at which it was recorded.
class StreamEvent;
StreamEvent* RecordEvent(StreamEvent* event, c10::DeviceIndex index);  // makes one if null
bool QueryEvent(const StreamEvent* event);
void SynchronizeEvent(const StreamEvent* event);
double ElapsedMs(const StreamEvent* start, const StreamEvent* end);
void DestroyEvent(StreamEvent* event) noexcept;

}  // namespace tpu::torch_layer
