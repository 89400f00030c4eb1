// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The part of the CUDA runtime that Lockstep uses, implemented on the CPU for tests. It precedes the
// toolkit's on the include path, so that the host compiler compiles the same sources. Signatures are those of
// CUDA 13.
//
// Guarantees in addition to results (emulation_test.cpp):
// - Streams are lazy. A kernel, an asynchronous copy, a record and a wait are only queued. They run when the
//   host waits for the stream, the device or an event, or when a running stream waits for their event. So a
//   missing wait shows each time, not by chance. A blocking copy runs at once and does not wait for streams
//   created with cudaStreamNonBlocking.
// - Device memory is poisoned at allocation and release (all bytes 0xFF: NaN as a float). It has canaries at
//   both ends, which cudaFree checks; a broken one ends the process with a message.
// - The threads of a block synchronise at barriers and shuffles as on a GPU. Threads that wait at different
//   ones end the process with a message.
// - A thread's asynchronous copies to shared memory happen when the thread waits for them.
// - An instruction that names an address space ends the process with a message if its address is in another
//   one, or not aligned.
// - With LOCKSTEP_EMULATED_RUN_AHEAD set, asynchronous copies to shared memory happen at once, and all
//   streams except the first run as early as their waits allow, so that memory that is reused too early shows
//   too. With LOCKSTEP_EMULATED_INTERLEAVED set, all streams take turns as soon as one of them runs, so that
//   memory that two of them use at the same time shows.
// - The streams of a capture are streams of its graph, too: its work is ordered by the captured waits alone.
//
// There are LOCKSTEP_EMULATED_GPUS (default 1) devices with LOCKSTEP_EMULATED_GPU_BYTES (default 4 GiB) each.
// Thread-safe.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "device_emulation.h"

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorPeerAccessAlreadyEnabled = 704,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureUnjoined = 904,
  cudaErrorStreamCaptureImplicit = 906,
  cudaErrorCapturedEvent = 907
};
enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4
};
enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrPciBusId = 33,
  cudaDevAttrPciDeviceId = 34,
  cudaDevAttrPciDomainId = 50,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
  cudaDevAttrHostNumaId = 134
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal = 0,
  cudaStreamCaptureModeThreadLocal = 1,
  cudaStreamCaptureModeRelaxed = 2
};
enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone = 0,
  cudaStreamCaptureStatusActive = 1,
  cudaStreamCaptureStatusInvalidated = 2
};

using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
using cudaGraph_t = struct CUgraph_st*;
using cudaGraphExec_t = struct CUgraphExec_st*;
using cudaHostFn_t = void (*)(void*);

inline constexpr unsigned int cudaStreamDefault = 0, cudaStreamNonBlocking = 1;
inline constexpr unsigned int cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2;
inline constexpr unsigned int cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2;

struct cudaUUID_t {
  char bytes[16];
};
struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  std::size_t totalGlobalMem, sharedMemPerBlock;
  int major, minor, multiProcessorCount, maxThreadsPerBlock, warpSize, pciBusID, pciDeviceID, pciDomainID,
      integrated, memoryBusWidth, l2CacheSize, ECCEnabled, asyncEngineCount, concurrentKernels;
};
struct cudaLaunchAttribute;
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned int numAttrs;
};

// Devices
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attr, int device);
cudaError_t cudaDeviceGetPCIBusId(char* pciBusId, int len, int device);
cudaError_t cudaDriverGetVersion(int* driverVersion);
cudaError_t cudaRuntimeGetVersion(int* runtimeVersion);
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);
cudaError_t cudaDeviceSynchronize();
const char* cudaGetErrorString(cudaError_t error);
const char* cudaGetErrorName(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();

// Memory
cudaError_t cudaMalloc(void** devPtr, std::size_t size);
cudaError_t cudaFree(void* devPtr);
cudaError_t cudaHostAlloc(void** pHost, std::size_t size, unsigned int flags);
cudaError_t cudaFreeHost(void* ptr);
cudaError_t cudaMemcpy(void* dst, const void* src, std::size_t count, cudaMemcpyKind kind);
cudaError_t cudaMemset(void* devPtr, int value, std::size_t count);
cudaError_t cudaMemcpyAsync(void* dst, const void* src, std::size_t count, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemsetAsync(void* devPtr, int value, std::size_t count, cudaStream_t stream = nullptr);

// Streams and events
cudaError_t cudaDeviceGetStreamPriorityRange(int* leastPriority, int* greatestPriority);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* pStream, unsigned int flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* pStream, unsigned int flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags = 0);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void* userData);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end);

// Graphs
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* pGraph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* pCaptureStatus);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* pGraphExec, cudaGraph_t graph,
                                 unsigned long long flags = 0);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream);
cudaError_t cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec);

// Kernels
namespace lockstep::emulation {
/// Queues `work` as a kernel of this configuration; `kernel` runs one thread of it. `function` is the
/// kernel's address: without limit_dynamic_shared it may have 48 KiB of shared memory, as on a GPU.
cudaError_t launch(const cudaLaunchConfig_t& config, const void* function, std::function<void()> kernel);
cudaError_t limit_dynamic_shared(const void* function, cudaFuncAttribute attribute, int bytes);
/// Queues host work on a stream, for replacements of libraries that work on streams.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);
}  // namespace lockstep::emulation

template <typename T>
cudaError_t cudaMalloc(T** devPtr, std::size_t size) {
  return cudaMalloc(reinterpret_cast<void**>(devPtr), size);
}
template <typename T>
cudaError_t cudaFuncSetAttribute(T* func, cudaFuncAttribute attr, int value) {
  return lockstep::emulation::limit_dynamic_shared(reinterpret_cast<const void*>(func), attr, value);
}
template <typename... Expected, typename... Given>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Expected...),
                               Given&&... args) {
  return lockstep::emulation::launch(
      *config, reinterpret_cast<const void*>(kernel),
      [kernel, ... values = static_cast<Expected>(std::forward<Given>(args))] { kernel(values...); });
}
