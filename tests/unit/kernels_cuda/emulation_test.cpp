// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The guarantees of the emulated GPU, on which the tests of GPU code rely.
#include <cstdlib>
#include <numeric>

#include "kernels/cuda_shared_memory.h"
#include "kernels/cuda_tensor_cores.h"
#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

void add_one_kernel(int count, int* values) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) ++values[i];
}

cudaStream_t make_stream() {
  cudaStream_t stream = nullptr;
  cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return stream;
}
cudaEvent_t make_event() {
  cudaEvent_t event = nullptr;
  cuda::check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  return event;
}
void add_one(cudaStream_t stream, int count, int* values) {
  Lane lane;
  lane.stream = stream;
  cuda::launch(lane, "add_one", add_one_kernel, 3, 32, count, values);
}
int read(const int* address) {
  int value = 0;
  cuda::check(cudaMemcpy(&value, address, sizeof value, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return value;
}

TEST(CudaEmulation, AMissingWaitIsDetected) {
  const OnDevice<int> values(std::vector<int>{5});
  const cudaStream_t stream = make_stream();
  add_one(stream, 1, values.data());
  EXPECT_EQ(read(values.data()), 5) << "a blocking copy must not wait for a non-blocking stream";
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(read(values.data()), 6);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST(CudaEmulation, AStreamWaitsForAnEventOnlyIfTold) {
  for (bool wait : {false, true}) {
    const OnDevice<int> values(std::vector<int>{5}), copy(1);
    const cudaStream_t first = make_stream(), second = make_stream();
    const cudaEvent_t event = make_event();
    add_one(first, 1, values.data());
    EXPECT_EQ(cudaEventRecord(event, first), cudaSuccess);
    if (wait) {
      EXPECT_EQ(cudaStreamWaitEvent(second, event, 0), cudaSuccess);
    }
    EXPECT_EQ(cudaMemcpyAsync(copy.data(), values.data(), sizeof(int), cudaMemcpyDeviceToDevice, second),
              cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(second), cudaSuccess);
    EXPECT_EQ(read(copy.data()), wait ? 6 : 5);
    EXPECT_EQ(cudaStreamDestroy(first), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(second), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  }
}

TEST(CudaEmulation, WaitingForAnEventRunsOnlyEarlierWork) {
  const OnDevice<int> values(std::vector<int>{5});
  const cudaStream_t stream = make_stream();
  const cudaEvent_t event = make_event();
  add_one(stream, 1, values.data());
  EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  add_one(stream, 1, values.data());
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  EXPECT_EQ(read(values.data()), 6);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(read(values.data()), 7);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST(CudaEmulation, PollingAnEventTerminates) {
  const OnDevice<int> values(std::vector<int>{5});
  const cudaStream_t stream = make_stream();
  const cudaEvent_t event = make_event();
  add_one(stream, 1, values.data());
  EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  int queries = 0;
  while (cudaEventQuery(event) == cudaErrorNotReady && queries < 100) ++queries;
  EXPECT_GT(queries, 0);
  EXPECT_LT(queries, 100);
  EXPECT_EQ(read(values.data()), 6);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST(CudaEmulation, FreshDeviceMemoryIsNan) {
  float* address = nullptr;
  ASSERT_EQ(cudaMalloc(&address, 40), cudaSuccess);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(address) % 256, 0U);
  float values[10];
  ASSERT_EQ(cudaMemcpy(values, address, sizeof values, cudaMemcpyDeviceToHost), cudaSuccess);
  for (float value : values) EXPECT_TRUE(std::isnan(value));
  EXPECT_EQ(cudaFree(address), cudaSuccess);
}

TEST(CudaEmulationDeathTest, WritingPastAnAllocationAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        char* address = nullptr;
        if (cudaMalloc(&address, 40) == cudaSuccess) address[40] = 1;
        (void)cudaFree(address);
      },
      "wrote past the 40 bytes");
}

TEST(CudaEmulation, TheEnvironmentLimitsMemory) {
  ASSERT_EQ(setenv("LOCKSTEP_EMULATED_GPU_BYTES", "1000", 1), 0);
  void *first = nullptr, *second = nullptr;
  EXPECT_EQ(cudaMalloc(&first, 600), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&second, 600), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  std::size_t free = 0, total = 0;
  EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(free, 400U);
  EXPECT_EQ(total, 1000U);
  EXPECT_EQ(cudaFree(first), cudaSuccess);
  ASSERT_EQ(unsetenv("LOCKSTEP_EMULATED_GPU_BYTES"), 0);
}

TEST(CudaEmulation, WorkOnAnotherDevicesStreamFails) {
  ASSERT_EQ(setenv("LOCKSTEP_EMULATED_GPUS", "2", 1), 0);
  const OnDevice<int> values(std::vector<int>{5});
  const cudaStream_t stream = make_stream();
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_THROW(add_one(stream, 1, values.data()), Error);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  ASSERT_EQ(unsetenv("LOCKSTEP_EMULATED_GPUS"), 0);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  (void)cudaGetLastError();
}

/// Reverses the block's values through shared memory, and sums the warp's values.
void reverse_and_sum_kernel(int* values, int* sums) {
  __shared__ int shared[64];
  const int thread = static_cast<int>(threadIdx.x);
  shared[thread] = values[thread];
  __syncthreads();
  values[thread] = shared[63 - thread];
  int sum = shared[thread];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xFFFFFFFFU, sum, step);
  sums[thread] = sum;
}

TEST(CudaEmulation, BarriersAndShuffles) {
  std::vector<int> numbers(64);
  std::iota(numbers.begin(), numbers.end(), 1);
  const OnDevice<int> values(numbers), sums(64);
  CudaLane lane;
  cuda::launch(lane, "reverse_and_sum", reverse_and_sum_kernel, 1, 64, values.data(), sums.data());
  const std::vector<int> reversed = values.host(), summed = sums.host();
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(reversed[static_cast<std::size_t>(i)], 64 - i);
    EXPECT_EQ(summed[static_cast<std::size_t>(i)], i < 32 ? 32 * 33 / 2 : 32 * 33 / 2 + 32 * 32);
  }
}

/// Copies values[8 i ...] to shared memory in two groups of four numbers and stores what it sees after
/// waiting for all groups except `pending`. The last number of each group is not copied but cleared.
void copying_kernel(int pending, const float* values, float* seen) {
  auto* shared = cuda::dynamic_shared<float>() + 8 * threadIdx.x;
  for (int group = 0; group < 2; ++group) {
    const float* from = values + 8 * threadIdx.x + 4 * group;
    for (int i = 0; i < 4; ++i) cuda::copy_async<4>(shared + 4 * group + i, from + i, i < 3);
    cuda::commit_copies();
  }
  if (pending == 0) cuda::wait_copies<0>();
  if (pending == 1) cuda::wait_copies<1>();
  for (int i = 0; i < 8; ++i) seen[8 * threadIdx.x + static_cast<unsigned int>(i)] = shared[i];
}

TEST(CudaEmulation, AsynchronousCopiesHappenWhenTheThreadWaits) {
  std::vector<float> numbers(64 * 8);
  std::iota(numbers.begin(), numbers.end(), 1.0F);
  for (const int pending : {0, 1, 2}) {
    const OnDevice<float> values(numbers), seen(64 * 8);
    CudaLane lane;
    cuda::launch_with_shared(lane, "copying", copying_kernel, 2, 64, 64 * 8 * sizeof(float), pending,
                             static_cast<const float*>(values.data()), seen.data());
    const std::vector<float> found = seen.host();
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (static_cast<int>(i % 8 / 4) >= 2 - pending)
        ASSERT_TRUE(std::isnan(found[i])) << i << ": a copy that was not waited for";
      else
        ASSERT_EQ(found[i], i % 4 < 3 ? numbers[i] : 0.0F) << i;
    }
  }
}

TEST(CudaEmulation, ALaunchWithMuchSharedMemoryMustAskForIt) {
  const OnDevice<float> values(std::vector<float>(8, 1.0F)), seen(8);
  cudaLaunchConfig_t config{};
  config.gridDim = config.blockDim = 1;
  config.dynamicSmemBytes = (48 << 10) + 16;
  const auto launch = [&] {
    return cudaLaunchKernelEx(&config, copying_kernel, 0, static_cast<const float*>(values.data()),
                              seen.data());
  };
  EXPECT_EQ(launch(), cudaErrorInvalidValue);
  (void)cudaGetLastError();
  EXPECT_EQ(cudaFuncSetAttribute(copying_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 << 10),
            cudaErrorInvalidValue);
  (void)cudaGetLastError();
  EXPECT_EQ(
      cudaFuncSetAttribute(copying_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (48 << 10) + 16),
      cudaSuccess);
  EXPECT_EQ(launch(), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

void overrunning_kernel() { cuda::dynamic_shared<char>()[40] = 1; }

TEST(CudaEmulationDeathTest, WritingPastDynamicSharedMemoryAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        cuda::launch_with_shared(Lane{}, "overrunning", overrunning_kernel, 1, 1, 40);
        (void)cudaDeviceSynchronize();
      },
      "wrote past its 40 bytes");
}

enum class Space { global, dynamic_shared, static_shared };
/// The beginning of four numbers in each space, for one thread.
float* address_in(Space space, float* global) {
  alignas(16) __shared__ float variable[4];
  return space == Space::global           ? global
         : space == Space::dynamic_shared ? cuda::dynamic_shared<float>()
                                          : variable;
}
void storing_kernel(Space to, float* global) { cuda::Wide::store(address_in(to, global), {1, 2, 3, 4}); }
void copying_from_kernel(Space to, Space from, float* global) {
  cuda::copy_async<16>(address_in(to, global), address_in(from, global), true);
}
void loading_matrices_kernel(Space from, float* global) {
  std::uint32_t values[4];
  cuda::load_matrices<false>(address_in(from, global), values);
}
/// Runs a warp, or one thread, of a kernel with 16 bytes of dynamic shared memory.
template <typename... Parameters, typename... Arguments>
void run_in_spaces(unsigned int threads, void (*kernel)(Parameters...), Arguments... arguments) {
  cuda::launch_with_shared(Lane{}, "address spaces", kernel, 1, threads, 16, arguments...);
  cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

TEST(CudaEmulation, InstructionsReachTheAddressSpaceThatTheyName) {
  const OnDevice<float> device(4);
  run_in_spaces(1, storing_kernel, Space::global, device.data());
  EXPECT_EQ(device.host(), (std::vector<float>{1, 2, 3, 4}));
  void* pinned = nullptr;
  ASSERT_EQ(cudaHostAlloc(&pinned, 16, cudaHostAllocDefault), cudaSuccess);
  run_in_spaces(1, storing_kernel, Space::global, static_cast<float*>(pinned));
  EXPECT_EQ(static_cast<float*>(pinned)[3], 4);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  for (const Space shared : {Space::dynamic_shared, Space::static_shared}) {
    run_in_spaces(1, copying_from_kernel, shared, Space::global, device.data());
    run_in_spaces(32, loading_matrices_kernel, shared, device.data());
  }
}

TEST(CudaEmulationDeathTest, AnInstructionWithAnAddressOfAnotherSpaceAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const OnDevice<float> device(8);
  float on_host[4];
  for (const Space shared : {Space::dynamic_shared, Space::static_shared}) {
    EXPECT_DEATH(run_in_spaces(1, storing_kernel, shared, device.data()),
                 "st.global .* not in global memory");
    EXPECT_DEATH(run_in_spaces(1, copying_from_kernel, shared, shared, device.data()),
                 "cp.async .* not in global memory");
  }
  EXPECT_DEATH(run_in_spaces(1, storing_kernel, Space::global, &on_host[0]), "not in global memory");
  EXPECT_DEATH(run_in_spaces(1, copying_from_kernel, Space::global, Space::global, device.data()),
               "cp.async .* not in shared memory");
  EXPECT_DEATH(run_in_spaces(32, loading_matrices_kernel, Space::global, device.data()),
               "ldmatrix .* not in shared memory");
  EXPECT_DEATH(run_in_spaces(1, storing_kernel, Space::global, device.data() + 1), "not aligned");
}

void diverging_kernel() {
  if (threadIdx.x < 5) return;
  __syncwarp();
}

TEST(CudaEmulationDeathTest, LanesAtDifferentBarriersAbort) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        cuda::launch(Lane{}, "diverging", diverging_kernel, 1, 32);
        (void)cudaDeviceSynchronize();
      },
      "never synchronise");
}

TEST(CudaEmulation, AGraphRunsTheCapturedWorkAtEachLaunch) {
  const OnDevice<int> values(std::vector<int>{5, 5});
  const cudaStream_t stream = make_stream(), side = make_stream();
  const cudaEvent_t fork = make_event(), join = make_event();
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  add_one(stream, 1, values.data());
  EXPECT_EQ(cudaEventRecord(fork, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(side, fork, 0), cudaSuccess);
  add_one(side, 2, values.data());
  EXPECT_EQ(cudaEventRecord(join, side), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream, join, 0), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(read(values.data()), 5) << "capturing must not run anything";
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  for (int launches = 0; launches < 3; ++launches) EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(values.host(), (std::vector<int>{5 + 2 * 3, 5 + 3}));
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  for (cudaStream_t one : {stream, side}) EXPECT_EQ(cudaStreamDestroy(one), cudaSuccess);
  for (cudaEvent_t one : {fork, join}) EXPECT_EQ(cudaEventDestroy(one), cudaSuccess);
}

TEST(CudaEmulation, ABranchOfAGraphWaitsOnlyIfTold) {
  for (const bool wait : {false, true}) {
    const OnDevice<int> values(std::vector<int>{5}), copy(1);
    const cudaStream_t stream = make_stream(), side = make_stream();
    const cudaEvent_t fork = make_event(), join = make_event();
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(fork, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(side, fork, 0), cudaSuccess);
    add_one(side, 1, values.data());
    EXPECT_EQ(cudaEventRecord(join, side), cudaSuccess);
    if (wait) EXPECT_EQ(cudaStreamWaitEvent(stream, join, 0), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(copy.data(), values.data(), sizeof(int), cudaMemcpyDeviceToDevice, stream),
              cudaSuccess);
    if (!wait) EXPECT_EQ(cudaStreamWaitEvent(stream, join, 0), cudaSuccess);
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    cudaGraphExec_t exec = nullptr;
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    for (int launches = 0; launches < 2; ++launches) {
      EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
      EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      EXPECT_EQ(read(copy.data()), (wait ? 6 : 5) + launches);
      EXPECT_EQ(read(values.data()), 6 + launches) << "the graph ends with all of its branches";
    }
    EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    for (cudaStream_t one : {stream, side}) EXPECT_EQ(cudaStreamDestroy(one), cudaSuccess);
    for (cudaEvent_t one : {fork, join}) EXPECT_EQ(cudaEventDestroy(one), cudaSuccess);
  }
}

TEST(CudaEmulation, WaitingOrNotJoiningInvalidatesACapture) {
  const OnDevice<int> values(std::vector<int>{5});
  const cudaStream_t stream = make_stream(), side = make_stream();
  const cudaEvent_t fork = make_event();
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(fork, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(side, fork, 0), cudaSuccess);
  add_one(side, 1, values.data());
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureUnjoined);
  (void)cudaGetLastError();
  for (cudaStream_t one : {stream, side}) EXPECT_EQ(cudaStreamDestroy(one), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(fork), cudaSuccess);
}

}  // namespace
}  // namespace lockstep
