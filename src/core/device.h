// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Where numbers live and where work runs. Layers hold addresses of a device's memory and pass a lane's stream
// on; they never ask which device it is. The CPU is one device; a GPU is another implementation of the same
// interface.
//
// A stream is a queue of work in order, given as the device's own handle; on the CPU it is null, work is done
// when a call returns, and streams and events are nothing. Calls that take a stream return at once on a
// device with memory of its own: host memory that they read or write must be pinned and be left alone until
// an event or synchronize() says that it is done.
#pragma once

#include <cstddef>
#include <string>

namespace lockstep {

/// Memory, copies, streams and events of one device. Thread-safe. Throws Error(device).
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  /// Its memory is the host's: no copies, no mirrors.
  virtual bool is_host() const = 0;

  /// 64-byte aligned and zeroed; throws Error(device) that says how much was asked for. allocate(0) is null.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void deallocate(void* address, std::size_t bytes) noexcept = 0;
  /// Host memory that copies reach at full speed and that kernels may read and write where it is; zeroed.
  virtual void* allocate_pinned(std::size_t bytes) = 0;
  virtual void deallocate_pinned(void* address, std::size_t bytes) noexcept = 0;
  /// The most bytes that were allocated at one time, without pinned ones.
  virtual std::size_t peak_bytes() const = 0;

  /// After all work of the device that was started before; done when they return. Any host memory.
  virtual void copy_from_host(void* to, const void* from, std::size_t bytes) = 0;
  virtual void copy_to_host(void* to, const void* from, std::size_t bytes) = 0;

  /// In the stream's order. upload: from pinned memory; download: to pinned memory; copy and zero: within the
  /// device.
  virtual void upload(void* stream, void* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* stream, void* to, const void* from, std::size_t bytes) = 0;
  virtual void copy(void* stream, void* to, const void* from, std::size_t bytes) = 0;
  virtual void zero(void* stream, void* to, std::size_t bytes) = 0;

  virtual void* create_stream() = 0;
  virtual void destroy_stream(void* stream) noexcept = 0;
  /// Waits until all work of the stream is done.
  virtual void synchronize(void* stream) = 0;

  virtual void* create_event() = 0;
  virtual void destroy_event(void* event) noexcept = 0;
  /// The event happens when the work that is in the stream now is done.
  virtual void record(void* event, void* stream) = 0;
  /// The calling thread waits for the event; an event that was never recorded has happened.
  virtual void wait(void* event) = 0;
  /// What enters the stream from now on waits for the event.
  virtual void stream_wait(void* stream, void* event) = 0;

  /// What enters the stream from begin to end is not done but recorded; launch() does it as one. The
  /// recording holds addresses and arguments as they are. Not on a host device.
  virtual void begin_recording(void* stream) = 0;
  virtual void* end_recording(void* stream) = 0;
  virtual void abandon_recording(void* stream) noexcept = 0;
  virtual void launch(void* graph, void* stream) = 0;
  virtual void destroy_graph(void* graph) noexcept = 0;

  /// A profile of the device's work begins or ends here, for a profiler of its maker's that waits to be told.
  /// Waits until all work of the device is done.
  virtual void mark_profile(bool begins) = 0;
};

Device& cpu_device();

/// Owners.
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
