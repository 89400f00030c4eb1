// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels of NVIDIA GPUs: the same families as the CPU's, with addresses of device memory and a lane's
// stream (a cudaStream_t). A call queues work and returns; it throws Error(device) where CUDA refuses it.
// Plain C++: the caller needs no CUDA header.
//
// Bits. Our own kernels are compiled without contraction (--fmad=false), like the CPU's: element-wise
// results, updates, pooling and dropout have the CPU's bits. Sums have an order that the shape alone fixes,
// another than the CPU's. Products and convolutions are the libraries', restricted to deterministic
// algorithms.
#pragma once

#include <string>

#include "kernels/kernel_table.h"

namespace lockstep {

struct CudaOptions {
  /// Dense layers and convolutions may round float32 inputs to TF32 (10 bits of mantissa) for the tensor
  /// cores.
  bool allow_tf32 = false;
};

/// The table for these options; it lives as long as the program. A lane must bring the table's scratch_bytes,
/// and what its primitives say.
const KernelTable& cuda_kernels(const CudaOptions& options);

/// "cuBLAS 13.1.0, cuDNN 9.19.0".
std::string cuda_library_versions();

}  // namespace lockstep
