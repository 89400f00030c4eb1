// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A CUDA GPU as a Device.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <string>

#include "core/device.h"

namespace lockstep {

/// Throws Error(device) with the CUDA error text unless `code` is success. `what` names the operation.
void check_cuda(cudaError_t code, const char* what);

/// One GPU. Every call sets the calling thread's current device first, so any thread may use it. Its streams
/// and the legacy default stream do not wait for each other.
class CudaDevice final : public Device {
 public:
  /// Creates the device's context.
  explicit CudaDevice(int index);

  std::string name() const override { return "cuda:" + std::to_string(index_); }
  bool is_host() const override { return false; }
  int index() const { return index_; }

  void* allocate(std::size_t bytes) override;
  void deallocate(void* address, std::size_t bytes) noexcept override;
  void* allocate_pinned(std::size_t bytes) override;
  void deallocate_pinned(void* address, std::size_t bytes) noexcept override;
  std::size_t peak_bytes() const override { return peak_.load(); }

  void copy_from_host(void* to, const void* from, std::size_t bytes) override;
  void copy_to_host(void* to, const void* from, std::size_t bytes) override;
  void upload(void* stream, void* to, const void* from, std::size_t bytes) override;
  void download(void* stream, void* to, const void* from, std::size_t bytes) override;
  void copy(void* stream, void* to, const void* from, std::size_t bytes) override;
  void zero(void* stream, void* to, std::size_t bytes) override;

  void* create_stream() override;
  void destroy_stream(void* stream) noexcept override;
  void synchronize(void* stream) override;
  void* create_event() override;
  void destroy_event(void* event) noexcept override;
  void record(void* event, void* stream) override;
  void wait(void* event) override;
  void stream_wait(void* stream, void* event) override;

  void begin_recording(void* stream) override;
  void* end_recording(void* stream) override;
  void abandon_recording(void* stream) noexcept override;
  void launch(void* graph, void* stream) override;
  void mark_profile(bool begins) override;
  void destroy_graph(void* graph) noexcept override;

 private:
  void select() const;
  void transfer(void* stream, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);

  int index_;
  std::atomic<std::size_t> in_use_{0}, peak_{0};
};

}  // namespace lockstep
