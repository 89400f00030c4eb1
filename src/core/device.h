// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A device: its memory, and the streams in which its work runs. The CPU is one implementation of the
// interface, a GPU another. Layers hold addresses of device memory and pass the stream of their worker on to
// the kernels. Code that depends on whether the memory is the host's asks is_host().
//
// A stream is a queue of work that runs in order, identified by the device's own handle. On the CPU a stream
// is null, work is done when the call returns, and events do nothing. On a device with its own memory, calls
// that take a stream return at once: the host memory that they read or write must be pinned, and must not be
// touched until an event or synchronize() reports that the work is done.
#pragma once

#include <cstddef>
#include <string>

namespace lockstep {

/// Memory, copies, streams and events of one device. Thread-safe. Throws Error(device).
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  /// True if the device uses host memory: no copies and no mirrors are needed.
  virtual bool is_host() const = 0;

  /// Allocates memory that is 64-byte aligned and initialised to zero. allocate(0) returns null. Throws
  /// Error(device) that states the requested size if there is not enough memory.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void deallocate(void* address, std::size_t bytes) noexcept = 0;
  /// Allocates host memory that copies transfer at full speed and that kernels may access directly;
  /// initialised to zero.
  virtual void* allocate_pinned(std::size_t bytes) = 0;
  virtual void deallocate_pinned(void* address, std::size_t bytes) noexcept = 0;
  /// The peak of the allocated bytes, without pinned memory.
  virtual std::size_t peak_bytes() const = 0;

  /// Synchronous copies from or to any host memory. They wait for all earlier work of the device and are
  /// complete on return.
  virtual void copy_from_host(void* to, const void* from, std::size_t bytes) = 0;
  virtual void copy_to_host(void* to, const void* from, std::size_t bytes) = 0;

  /// Copies in stream order. upload: from pinned memory; download: to pinned memory; copy and zero: within
  /// the device.
  virtual void upload(void* stream, void* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* stream, void* to, const void* from, std::size_t bytes) = 0;
  virtual void copy(void* stream, void* to, const void* from, std::size_t bytes) = 0;
  virtual void zero(void* stream, void* to, std::size_t bytes) = 0;

  virtual void* create_stream() = 0;
  virtual void destroy_stream(void* stream) noexcept = 0;
  /// Blocks the calling thread until all work of the stream is done.
  virtual void synchronize(void* stream) = 0;

  virtual void* create_event() = 0;
  virtual void destroy_event(void* event) noexcept = 0;
  /// The event completes when all work that is now in the stream is done.
  virtual void record(void* event, void* stream) = 0;
  /// Blocks the calling thread until the event completes. An event that was never recorded counts as
  /// complete.
  virtual void wait(void* event) = 0;
  /// Work that enters the stream from now on waits for the event.
  virtual void stream_wait(void* stream, void* event) = 0;

  /// Graphs. Work that enters the stream between begin_recording() and end_recording() is recorded instead of
  /// run; launch() runs the recorded work as one unit. A recording keeps addresses and arguments by value.
  /// Not on a host device.
  virtual void begin_recording(void* stream) = 0;
  virtual void* end_recording(void* stream) = 0;
  virtual void abandon_recording(void* stream) noexcept = 0;
  virtual void launch(void* graph, void* stream) = 0;
  virtual void destroy_graph(void* graph) noexcept = 0;

  /// Marks the begin or the end of a profile for the device vendor's profiler. Waits until all work of the
  /// device is done.
  virtual void mark_profile(bool begins) = 0;
};

Device& cpu_device();
/// The CPU for plans that are never computed (`lockstep check`): a large block is address space, and takes
/// memory only where it is written.
Device& cpu_device_for_plans();

/// RAII owners of a stream and of an event.
class DeviceStream {
 public:
  DeviceStream() = default;
  explicit DeviceStream(Device& device) : device_(&device), stream_(device.create_stream()) {}
  ~DeviceStream() {
    if (device_ != nullptr) device_->destroy_stream(stream_);
  }
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;
  void* get() const { return stream_; }
  void synchronize() const { device_->synchronize(stream_); }

 private:
  Device* device_ = nullptr;
  void* stream_ = nullptr;
};

class DeviceEvent {
 public:
  explicit DeviceEvent(Device& device) : device_(&device), event_(device.create_event()) {}
  ~DeviceEvent() { device_->destroy_event(event_); }
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;
  void record(void* stream) const { device_->record(event_, stream); }
  void wait() const { device_->wait(event_); }
  void stream_wait(void* stream) const { device_->stream_wait(stream, event_); }

 private:
  Device* device_;
  void* event_;
};

}  // namespace lockstep
