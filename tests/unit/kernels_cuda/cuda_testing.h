// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Shared parts of the tests of GPU kernels: device memory with values, a lane with a stream, the visible skip
// without a GPU. Compiled against a real GPU and against the emulated one.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/chosen_algorithms_cuda.h"
#include "kernels/cuda_launch.h"
#include "kernels/kernel_table_cuda.h"
#include "unit/kernels/kernel_testing.h"

namespace lockstep {

/// Skips visibly without a GPU; LOCKSTEP_REQUIRE_GPU=1 turns the skip into a failure. A test that fails
/// prints the algorithms that libraries chose for its operations.
class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cuda::forget_algorithms();
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count > 0) return;
    const std::string why = error == cudaSuccess ? "none is visible" : cudaGetErrorString(error);
    const char* required = std::getenv("LOCKSTEP_REQUIRE_GPU");
    // This text differs from the one that CTest takes for a skip.
    if (required != nullptr && std::string(required) == "1") FAIL() << "a GPU is required: " << why;
    GTEST_SKIP() << "no GPU: " << why;
  }
  void TearDown() override {
    if (HasFailure()) std::cout << "Algorithms of this test:\n" << cuda::chosen_algorithms();
  }
};

/// Numbers in device memory, `shift` elements after its aligned beginning, followed by one guard element.
template <typename T>
class OnDevice {
 public:
  explicit OnDevice(std::int64_t count, int shift = 0)
      : count_(static_cast<std::size_t>(count)), shift_(shift) {
    void* address = nullptr;
    cuda::check(cudaMalloc(&address, (count_ + static_cast<std::size_t>(shift_)) * sizeof(T) + 16),
                "cudaMalloc");
    memory_ = static_cast<T*>(address);
    cuda::check(cudaMemset(memory_, 0xFF, (count_ + static_cast<std::size_t>(shift_)) * sizeof(T) + 16),
                "cudaMemset");
    cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  template <typename U>
  explicit OnDevice(const std::vector<U>& values, int shift = 0)
      : OnDevice(static_cast<std::int64_t>(values.size()), shift) {
    std::vector<T> rounded;
    for (U value : values) rounded.push_back(static_cast<T>(value));
    if (count_ > 0)
      cuda::check(cudaMemcpy(data(), rounded.data(), count_ * sizeof(T), cudaMemcpyHostToDevice),
                  "cudaMemcpy");
    cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  ~OnDevice() {
    if (memory_ == nullptr) return;
    EXPECT_EQ(cudaFree(memory_), cudaSuccess);
  }
  OnDevice(OnDevice&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), count_(other.count_), shift_(other.shift_) {}
  OnDevice& operator=(OnDevice&&) = delete;

  T* data() const { return memory_ + shift_; }
  /// Waits for the GPU and returns the numbers. Fails if the guard element was overwritten.
  std::vector<T> host() const {
    cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::vector<T> values(count_);
    if (count_ > 0)
      cuda::check(cudaMemcpy(values.data(), data(), count_ * sizeof(T), cudaMemcpyDeviceToHost),
                  "cudaMemcpy");
    unsigned char guard[4];
    cuda::check(cudaMemcpy(guard, data() + count_, sizeof guard, cudaMemcpyDeviceToHost), "cudaMemcpy");
    for (unsigned char byte : guard) EXPECT_EQ(byte, 0xFF) << "the guard element was overwritten";
    return values;
  }
  Values values() const {
    const std::vector<T> numbers = host();
    return {numbers.begin(), numbers.end()};
  }

 private:
  T* memory_ = nullptr;
  std::size_t count_;
  int shift_;
};
using DeviceFloats = OnDevice<float>;
using DeviceDoubles = OnDevice<double>;

/// A lane with its own stream and scratch.
class CudaLane {
 public:
  explicit CudaLane(std::size_t scratch_bytes = cuda::kScratchBytes)
      : scratch_(static_cast<std::int64_t>(scratch_bytes)) {
    cudaStream_t stream = nullptr;
    cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    lane.stream = stream;
    lane.scratch = scratch_.data();
    lane.scratch_bytes = scratch_bytes;
  }
  ~CudaLane() { EXPECT_EQ(cudaStreamDestroy(static_cast<cudaStream_t>(lane.stream)), cudaSuccess); }
  CudaLane(const CudaLane&) = delete;
  CudaLane& operator=(const CudaLane&) = delete;
  operator const Lane&() const { return lane; }  // NOLINT(google-explicit-constructor): acts as a lane

  Lane lane;

 private:
  OnDevice<unsigned char> scratch_;
};

inline const KernelTable& gpu() { return cuda_kernels({}); }

/// Equal bits, or both NaN (whose bits differ between processors).
template <typename T>
bool same_number(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0 || (std::isnan(a) && std::isnan(b));
}
template <typename T>
void expect_same(const std::vector<T>& actual, const std::vector<T>& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  int reported = 0;
  for (std::size_t i = 0; i < actual.size() && reported < 5; ++i) {
    if (same_number(actual[i], expected[i])) continue;
    ADD_FAILURE() << what << ": element " << i << " is " << actual[i] << ", not " << expected[i];
    ++reported;
  }
}
inline std::vector<float> host_of(const Floats& floats) {
  return {floats.data(), floats.data() + floats.size()};
}

/// Sizes for one block and for several, with and without channels in fours, and without rows.
struct Size {
  std::int64_t rows, channels;
};
inline std::string describe(Size size) { return fmt::format("{}x{}", size.rows, size.channels); }
inline const std::vector<Size> kSizes{{0, 5},    {1, 1},    {1, 16},   {3, 3},    {17, 17},
                                      {130, 10}, {333, 16}, {300, 64}, {70, 100}, {5, 512},
                                      {97, 130}, {2600, 3}, {7, 1028}, {1100, 36}};

}  // namespace lockstep
