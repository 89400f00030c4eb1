// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels of NVIDIA GPUs: the same families as on the CPU, with device addresses and a lane's stream (a
// cudaStream_t). A call queues work and returns; it throws Error(device) if CUDA rejects it. Plain C++: the
// caller needs no CUDA header.
//
// Bits: our own kernels are compiled without contraction (--fmad=false), like the CPU's. Element-wise
// results, updates, pooling and dropout have the CPU's bits. The shape alone fixes the order of sums, which
// differs from the CPU's. Products and convolutions come from the libraries, restricted to deterministic
// algorithms.
#pragma once

#include <string>

#include "kernels/kernel_table.h"

namespace lockstep {

struct CudaOptions {
  /// Dense layers and convolutions may round float32 inputs to TF32 (10 mantissa bits) for the tensor cores.
  bool allow_tf32 = false;
  /// Plans of libraries are checked when they are chosen, and passed over where they compute wrongly.
  bool check_plans = true;
};

/// The table for these options; it lives as long as the program. A lane needs scratch for the larger of the
/// table's scratch_bytes and that of its primitives.
const KernelTable& cuda_kernels(const CudaOptions& options);

/// "cuBLAS 13.1.0, cuDNN 9.19.0".
std::string cuda_library_versions();

}  // namespace lockstep
