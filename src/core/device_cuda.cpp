// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/device_cuda.h"

#include <cuda_profiler_api.h>

#include <cstring>

#include "core/error.h"

namespace lockstep {

namespace {

cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t event_of(void* event) { return static_cast<cudaEvent_t>(event); }
double megabytes(std::size_t bytes) { return static_cast<double>(bytes) / 1e6; }

}  // namespace

void check_cuda(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  (void)cudaGetLastError();  // reported here: clear it, so that the next call does not report it again
  throw Error(ErrorKind::device,
              fmt::format("{} failed: {} ({})", what, cudaGetErrorString(code), cudaGetErrorName(code)));
}

CudaDevice::CudaDevice(int index) : index_(index) {
  check_cuda(cudaSetDevice(index), "choosing the GPU");
  check_cuda(cudaFree(nullptr), "creating the GPU's context");
}

void CudaDevice::select() const { check_cuda(cudaSetDevice(index_), "choosing the GPU"); }

void* CudaDevice::allocate(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  select();
  void* address = nullptr;
  const cudaError_t code = cudaMalloc(&address, bytes);
  if (code == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    std::size_t free = 0, total = 0;
    (void)cudaMemGetInfo(&free, &total);
    throw Error(
        ErrorKind::device,
        fmt::format("out of GPU memory: {:.1f} MB could not be allocated on {}; {:.1f} MB are in use by "
                    "this rank, {:.1f} of {:.1f} MB are free",
                    megabytes(bytes), name(), megabytes(in_use_.load()), megabytes(free), megabytes(total)),
        "",
        "Use a smaller train.batch_size or more GPUs; `lockstep check` prints what a configuration needs.");
  }
  check_cuda(code, "allocating GPU memory");
  const cudaError_t zeroed = cudaMemset(address, 0, bytes);
  if (zeroed != cudaSuccess) (void)cudaFree(address);
  check_cuda(zeroed, "clearing GPU memory");
  // The legacy stream is not ordered before the non-blocking streams that will use the memory.
  check_cuda(cudaStreamSynchronize(nullptr), "clearing GPU memory");
  const std::size_t now = in_use_.fetch_add(bytes) + bytes;
  std::size_t peak = peak_.load();
  while (peak < now && !peak_.compare_exchange_weak(peak, now)) {
  }
  return address;
}

void CudaDevice::deallocate(void* address, std::size_t bytes) noexcept {
  if (address == nullptr) return;
  (void)cudaSetDevice(index_);
  (void)cudaFree(address);
  in_use_.fetch_sub(bytes);
}

void* CudaDevice::allocate_pinned(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  select();
  void* address = nullptr;
  const cudaError_t code = cudaHostAlloc(&address, bytes, cudaHostAllocDefault);
  if (code == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    throw Error(ErrorKind::device,
                fmt::format("{:.1f} MB of pinned host memory could not be allocated for {}", megabytes(bytes),
                            name()),
                "", "Use a smaller train.batch_size, or raise the limit of locked memory (ulimit -l).");
  }
  check_cuda(code, "allocating pinned host memory");
  std::memset(address, 0, bytes);
  return address;
}

void CudaDevice::deallocate_pinned(void* address, std::size_t) noexcept {
  if (address == nullptr) return;
  (void)cudaSetDevice(index_);
  (void)cudaFreeHost(address);
}

void CudaDevice::copy_from_host(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  select();
  check_cuda(cudaDeviceSynchronize(), "waiting for the GPU");
  check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "copying to the GPU");
  // A copy from pageable memory may still be in progress on the device when the call returns.
  check_cuda(cudaStreamSynchronize(nullptr), "copying to the GPU");
}

void CudaDevice::copy_to_host(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  select();
  check_cuda(cudaDeviceSynchronize(), "waiting for the GPU");
  check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "copying from the GPU");
}

void CudaDevice::transfer(void* stream, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) return;
  select();
  check_cuda(cudaMemcpyAsync(to, from, bytes, kind, stream_of(stream)), "starting a copy");
}

void CudaDevice::upload(void* stream, void* to, const void* from, std::size_t bytes) {
  transfer(stream, to, from, bytes, cudaMemcpyHostToDevice);
}
void CudaDevice::download(void* stream, void* to, const void* from, std::size_t bytes) {
  transfer(stream, to, from, bytes, cudaMemcpyDeviceToHost);
}
void CudaDevice::copy(void* stream, void* to, const void* from, std::size_t bytes) {
  transfer(stream, to, from, bytes, cudaMemcpyDeviceToDevice);
}

void CudaDevice::zero(void* stream, void* to, std::size_t bytes) {
  if (bytes == 0) return;
  select();
  check_cuda(cudaMemsetAsync(to, 0, bytes, stream_of(stream)), "clearing GPU memory");
}

void* CudaDevice::create_stream() {
  select();
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  return stream;
}

void CudaDevice::destroy_stream(void* stream) noexcept {
  if (stream != nullptr) (void)cudaStreamDestroy(stream_of(stream));
}

void CudaDevice::synchronize(void* stream) {
  select();
  check_cuda(cudaStreamSynchronize(stream_of(stream)), "the GPU's work");
}

void* CudaDevice::create_event() {
  select();
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "creating an event");
  return event;
}

void CudaDevice::destroy_event(void* event) noexcept {
  if (event != nullptr) (void)cudaEventDestroy(event_of(event));
}

void CudaDevice::record(void* event, void* stream) {
  select();
  check_cuda(cudaEventRecord(event_of(event), stream_of(stream)), "recording an event");
}

void CudaDevice::wait(void* event) {
  select();
  check_cuda(cudaEventSynchronize(event_of(event)), "the GPU's work");
}

void CudaDevice::stream_wait(void* stream, void* event) {
  select();
  check_cuda(cudaStreamWaitEvent(stream_of(stream), event_of(event), 0), "waiting for an event");
}

// ThreadLocal: other threads (a writer, the reducer) may continue to use the device.
void CudaDevice::begin_recording(void* stream) {
  select();
  check_cuda(cudaStreamBeginCapture(stream_of(stream), cudaStreamCaptureModeThreadLocal),
             "recording a graph");
}

void* CudaDevice::end_recording(void* stream) {
  select();
  cudaGraph_t graph = nullptr;
  check_cuda(cudaStreamEndCapture(stream_of(stream), &graph), "recording a graph");
  cudaGraphExec_t executable = nullptr;
  const cudaError_t code = cudaGraphInstantiate(&executable, graph, 0);
  (void)cudaGraphDestroy(graph);
  check_cuda(code, "instantiating a graph");
  return executable;
}

void CudaDevice::abandon_recording(void* stream) noexcept {
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(stream_of(stream), &graph) == cudaSuccess && graph != nullptr)
    (void)cudaGraphDestroy(graph);
  (void)cudaGetLastError();
}

void CudaDevice::launch(void* graph, void* stream) {
  select();
  check_cuda(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), stream_of(stream)), "launching a graph");
}

void CudaDevice::destroy_graph(void* graph) noexcept {
  if (graph != nullptr) (void)cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph));
}

// Without a profiler these calls do nothing.
void CudaDevice::mark_profile(bool begins) {
  select();
  check_cuda(cudaDeviceSynchronize(), "waiting for the GPU");
  check_cuda(begins ? cudaProfilerStart() : cudaProfilerStop(), "notifying the profiler");
}

}  // namespace lockstep
