// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether a plan of a library computes what it should (private to this room): convolutions of cuDNN, products
// of cuBLASLt. A plan multiplies small whole numbers of its shape (exact_sums_cuda.h), so its result must be
// exact, whatever the order of its sums. Some hundred elements are compared, the rest is looked at for
// numbers that were not written.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include "core/function_ref.h"
#include "kernels/cublaslt_cuda.h"
#include "kernels/cudnn_cuda.h"

namespace lockstep::cuda {

/// Runs the plan in the stream, on device memory that is aligned as the shape promises and no better.
using RunConvolution =
    FunctionRef<void(cudaStream_t stream, const void* x, const void* kernel, const void* y, void* workspace)>;
/// bias is null if the shape has none.
using RunProduct = FunctionRef<void(cudaStream_t stream, const void* a, const void* b, const void* bias,
                                    void* d, void* workspace)>;

// These two wait for the plan, on the current device. They return what is wrong, "3 of 256 checked numbers
// are wrong (number 17 is 3, not -5)", or an empty text. They throw Error(device) if the plan fails, or if
// there is too little memory. Thread-safe; one plan is checked at a time.

std::string error_of_plan(const PlanSpec& spec, std::size_t workspace_bytes, RunConvolution run);
std::string error_of_plan(const ProductShape& shape, std::size_t workspace_bytes, RunProduct run);

/// Frees the memory of all checks, which is kept for the next one.
void free_check_memory();

}  // namespace lockstep::cuda
