// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Devices and memory of the emulated GPU.
#include "runtime.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace lockstep::emulation {
namespace {

/// Where work is only counted, allocations from this size on share their pages.
constexpr std::size_t kCountedBytes = std::size_t{16} << 20;
thread_local int this_device = 0;
thread_local cudaError_t last_error = cudaSuccess;

std::size_t from_environment(const char* name, std::size_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<std::size_t>(std::strtoull(text, nullptr, 10));
}

/// A group of ranks knows a part of it. The lock is held.
bool touches_handed_out(const void* memory, std::size_t bytes) {
  const char* const begin = static_cast<const char*>(memory);
  return std::ranges::any_of(runtime().handed_out, [&](const auto& one) {
    return begin < one->memory + one->bytes && one->memory < begin + bytes;
  });
}

}  // namespace

Runtime& runtime() {
  static Runtime* instance = new Runtime;  // outlives static objects that release device memory
  return *instance;
}

cudaError_t answer(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

int device_count() { return static_cast<int>(from_environment("LOCKSTEP_EMULATED_GPUS", 1)); }
std::size_t device_bytes() { return from_environment("LOCKSTEP_EMULATED_GPU_BYTES", std::size_t{4} << 30); }

int current_device() { return this_device; }

void* hand_out(const void* group, const void* memory, std::size_t bytes) {
  const std::lock_guard guard(runtime().lock);
  runtime().handed_out.push_back(std::make_unique<Runtime::HandedOut>(
      Runtime::HandedOut{group, static_cast<const char*>(memory), bytes}));
  return runtime().handed_out.back().get();
}

void take_back(void* handed_out) {
  const std::lock_guard guard(runtime().lock);
  std::erase_if(runtime().handed_out, [&](const auto& one) { return one.get() == handed_out; });
}

void take_back_all(const void* group) {
  const std::lock_guard guard(runtime().lock);
  std::erase_if(runtime().handed_out, [&](const auto& one) { return one->group == group; });
}

bool is_handed_out(const void* group, const void* memory, std::size_t bytes) {
  const std::lock_guard guard(runtime().lock);
  const char* const begin = static_cast<const char*>(memory);
  return std::ranges::any_of(runtime().handed_out, [&](const auto& one) {
    return one->group == group && one->memory <= begin && begin + bytes <= one->memory + one->bytes;
  });
}

}  // namespace lockstep::emulation

using namespace lockstep::emulation;

// Devices
// -------------------------------------------------------------------------------------------------------------

cudaError_t cudaGetDeviceCount(int* count) {
  *count = device_count();
  return answer(*count > 0 ? cudaSuccess : cudaErrorNoDevice);
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= device_count()) return answer(cudaErrorInvalidDevice);
  this_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = this_device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int device) {
  if (device < 0 || device >= device_count()) return answer(cudaErrorInvalidDevice);
  *prop = {};
  std::strcpy(prop->name, "emulated");
  prop->uuid.bytes[0] = static_cast<char>(device + 1);
  prop->totalGlobalMem = device_bytes();
  prop->sharedMemPerBlock = 48 << 10;
  prop->major = 9;
  prop->multiProcessorCount = 4;
  prop->maxThreadsPerBlock = 1024;
  prop->warpSize = 32;
  prop->pciBusID = device + 1;
  prop->asyncEngineCount = 1;
  prop->concurrentKernels = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attr, int device) {
  cudaDeviceProp prop;
  if (cudaGetDeviceProperties(&prop, device) != cudaSuccess) return answer(cudaErrorInvalidDevice);
  switch (attr) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = prop.maxThreadsPerBlock;
      return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      *value = prop.multiProcessorCount;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(kMostSharedBytes);
      return cudaSuccess;
    case cudaDevAttrPciBusId:
      *value = prop.pciBusID;
      return cudaSuccess;
    case cudaDevAttrPciDeviceId:
    case cudaDevAttrPciDomainId:
    case cudaDevAttrComputeCapabilityMinor:
      *value = 0;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = prop.major;
      return cudaSuccess;
    case cudaDevAttrHostNumaId:
      *value = -1;
      return cudaSuccess;
  }
  return answer(cudaErrorInvalidValue);
}
cudaError_t cudaDeviceGetPCIBusId(char* pciBusId, int len, int device) {
  if (device < 0 || device >= device_count()) return answer(cudaErrorInvalidDevice);
  std::snprintf(pciBusId, static_cast<std::size_t>(len), "0000:%02x:00.0", static_cast<unsigned>(device + 1));
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* driverVersion) {
  *driverVersion = 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* runtimeVersion) {
  *runtimeVersion = 13000;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const std::lock_guard guard(runtime().lock);
  *total = device_bytes();
  *free = *total - std::min(*total, runtime().memory.used_bytes(this_device));
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  const std::lock_guard guard(runtime().lock);
  if (invalidates_captures()) return answer(cudaErrorStreamCaptureUnsupported);
  ++counting().waits;
  drain_all(false);
  return cudaSuccess;
}
const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorPeerAccessAlreadyEnabled:
      return "cudaErrorPeerAccessAlreadyEnabled";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorStreamCaptureImplicit:
      return "cudaErrorStreamCaptureImplicit";
    case cudaErrorCapturedEvent:
      return "cudaErrorCapturedEvent";
  }
  return "unknown error";
}
namespace {
cudaError_t tell_profiler(const char* what) {
  const std::lock_guard guard(runtime().lock);
  if (std::getenv("LOCKSTEP_EMULATED_PROFILER") != nullptr)
    std::fprintf(stderr, "emulated profiler: %s\n", what);
  return cudaSuccess;
}
}  // namespace
cudaError_t cudaProfilerStart() { return tell_profiler("start"); }
cudaError_t cudaProfilerStop() { return tell_profiler("stop"); }
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : cudaGetErrorName(error);
}
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }

// Memory
// -------------------------------------------------------------------------------------------------------------

cudaError_t cudaMalloc(void** devPtr, std::size_t size) {
  Runtime& r = runtime();
  const std::lock_guard guard(r.lock);
  if (invalidates_captures()) return answer(cudaErrorStreamCaptureUnsupported);
  if (device_count() == 0) return answer(cudaErrorNoDevice);
  if (size == 0)
    *devPtr = nullptr;
  else if (counts_only() && size >= kCountedBytes)
    *devPtr = r.memory.allocate_shared(this_device, size);
  else
    *devPtr = r.memory.allocate(this_device, size, device_bytes());
  return size == 0 || *devPtr != nullptr ? cudaSuccess : answer(cudaErrorMemoryAllocation);
}
cudaError_t cudaFree(void* devPtr) {
  Runtime& r = runtime();
  const std::lock_guard guard(r.lock);
  if (devPtr == nullptr) return cudaSuccess;
  if (invalidates_captures()) return answer(cudaErrorStreamCaptureUnsupported);
  drain_all(false);  // as on a GPU, it waits for the device
  if (const std::size_t bytes = r.memory.bytes_at(devPtr); touches_handed_out(devPtr, bytes)) {
    std::fprintf(stderr, "emulated GPU: the %zu bytes at %p are freed while a group of ranks knows them\n",
                 bytes, devPtr);
    std::abort();
  }
  return r.memory.release(devPtr, false) ? cudaSuccess : answer(cudaErrorInvalidValue);
}
cudaError_t cudaHostAlloc(void** pHost, std::size_t size, unsigned int) {
  Runtime& r = runtime();
  const std::lock_guard guard(r.lock);
  *pHost = counts_only() && size >= kCountedBytes ? r.memory.allocate_shared(-1, size)
                                                  : r.memory.allocate_pinned(size);
  return *pHost != nullptr ? cudaSuccess : answer(cudaErrorMemoryAllocation);
}
cudaError_t cudaFreeHost(void* ptr) {
  Runtime& r = runtime();
  const std::lock_guard guard(r.lock);
  if (ptr == nullptr) return cudaSuccess;
  drain_all(false);
  return r.memory.release(ptr, true) ? cudaSuccess : answer(cudaErrorInvalidValue);
}
cudaError_t cudaMemcpy(void* dst, const void* src, std::size_t count, cudaMemcpyKind) {
  const std::lock_guard guard(runtime().lock);
  if (invalidates_captures()) return answer(cudaErrorStreamCaptureImplicit);
  ++counting().waits;
  drain_all(true);
  if (count > 0) std::memcpy(dst, src, count);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* devPtr, int value, std::size_t count) {
  const std::lock_guard guard(runtime().lock);
  if (invalidates_captures()) return answer(cudaErrorStreamCaptureImplicit);
  drain_all(true);
  if (count > 0 && !(counts_only() && count >= kCountedBytes)) std::memset(devPtr, value, count);
  return cudaSuccess;
}
namespace {
Kind kind_of(cudaMemcpyKind kind) {
  return kind == cudaMemcpyHostToDevice   ? Kind::upload
         : kind == cudaMemcpyDeviceToHost ? Kind::download
                                          : Kind::move;
}
}  // namespace
cudaError_t cudaMemcpyAsync(void* dst, const void* src, std::size_t count, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  Runtime& r = runtime();
  const std::lock_guard guard(r.lock);
  CUstream_st* target = resolve(stream);
  if (target == nullptr) return answer(cudaErrorInvalidResourceHandle);
  if (count == 0) return cudaSuccess;
  // Memory that is neither on a device nor pinned: the copy is complete when the call returns, as on a GPU.
  const bool pageable = !r.memory.may_be_used_later(dst) || !r.memory.may_be_used_later(src);
  if (pageable && invalidates_own_capture(target)) return answer(cudaErrorStreamCaptureUnsupported);
  const cudaError_t error = push(target, {[=] { std::memcpy(dst, src, count); }, kind_of(kind), count});
  if (error == cudaSuccess && pageable) {
    ++counting().waits;
    drain(target);
  }
  return error;
}
cudaError_t cudaMemsetAsync(void* devPtr, int value, std::size_t count, cudaStream_t stream) {
  const std::lock_guard guard(runtime().lock);
  return push(resolve(stream), {[=] { std::memset(devPtr, value, count); }, Kind::clear, count});
}
