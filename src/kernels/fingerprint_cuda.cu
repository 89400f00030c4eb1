// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Fingerprints on a GPU. The hash is the sum modulo 2^64 of one mixed word per number, computed from its bits
// and its position. Integer sums do not depend on the order in which threads add.
#include "kernels/fingerprint.h"

#include <cstring>

#include "kernels/cuda_launch.h"
#include "kernels/cuda_vector.h"
#include "kernels/factory_cuda.h"

namespace lockstep::cuda {
namespace {

constexpr int kBlocks = 1024;  ///< largest grid; each block stores a part in the lane's scratch
static_assert(kBlocks * sizeof(Fingerprint) <= kScratchBytes);

/// The finalizer of MurmurHash3 (A. Appleby, public domain): each input bit affects every output bit.
__device__ std::uint64_t mixed(std::uint64_t word) {
  word ^= word >> 33;
  word *= 0xff51afd7ed558ccdULL;
  word ^= word >> 33;
  word *= 0xc4ceb9fe1a85ec53ULL;
  word ^= word >> 33;
  return word;
}

__device__ std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

struct Part {
  std::uint64_t hash = 0;
  std::uint32_t broken = 0;
  __device__ void add(std::uint32_t bits, std::int64_t place) {
    // The odd factor keeps positions distinct, so zeros at different positions hash differently.
    hash += mixed((static_cast<std::uint64_t>(place) + 1) * 0x9e3779b97f4a7c15ULL ^ bits);
    broken |= (bits & 0x7F800000U) == 0x7F800000U ? 1U : 0U;
  }
};

/// Sums the parts of a block's threads; valid in thread 0.
__device__ Fingerprint sum_of_block(const Part& own) {
  __shared__ std::uint64_t hashes[kThreads];
  __shared__ std::uint32_t broken[kThreads];
  const auto t = static_cast<int>(threadIdx.x);
  hashes[t] = own.hash;
  broken[t] = own.broken;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (t >= half) continue;
    hashes[t] += hashes[t + half];
    broken[t] |= broken[t + half];
  }
  return {hashes[t], broken[t], 0};
}

__global__ void __launch_bounds__(kThreads)
    fingerprint_kernel(std::int64_t count, const float* values, Fingerprint* parts) {
  Part own;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (std::int64_t i = first; i < count / 4; i += stride) {
    const Pack<4> four = Wide::load(values + 4 * i);
    for (int k = 0; k < 4; ++k) own.add(bits_of(four.at[k]), 4 * i + k);
  }
  const std::int64_t rest = count / 4 * 4 + first;
  if (rest < count) own.add(bits_of(values[rest]), rest);
  const Fingerprint sum = sum_of_block(own);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

/// Runs in one block.
__global__ void __launch_bounds__(kThreads)
    finish_fingerprint_kernel(int blocks, const Fingerprint* parts, Fingerprint* to) {
  Part own;
  for (int i = static_cast<int>(threadIdx.x); i < blocks; i += kThreads) {
    own.hash += parts[i].hash;
    own.broken |= parts[i].broken;
  }
  const Fingerprint sum = sum_of_block(own);
  if (threadIdx.x == 0) *to = sum;
}

class CudaFingerprint final : public FingerprintKernels {
 public:
  void fingerprint(const Lane& lane, std::int64_t count, const float* values,
                   Fingerprint* to) const override {
    require(wide_aligned(values), "the numbers are not aligned to 16 bytes");
    const unsigned int wanted = blocks_for(count / 4);
    const unsigned int blocks = wanted < kBlocks ? wanted : kBlocks;
    auto* const parts = reinterpret_cast<Fingerprint*>(scratch_of(lane));
    launch(lane, "fingerprint", fingerprint_kernel, blocks, kThreads, count, values, parts);
    launch(lane, "finish_fingerprint", finish_fingerprint_kernel, 1, kThreads, static_cast<int>(blocks),
           parts, to);
  }
};

}  // namespace

const FingerprintKernels& fingerprint_kernels() {
  static const CudaFingerprint kernels;
  return kernels;
}

}  // namespace lockstep::cuda
