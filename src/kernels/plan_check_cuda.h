// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether a plan of a library computes what it should (private to this room): convolutions of cuDNN, products
// of cuBLASLt. A plan multiplies small whole numbers of its shape (exact_sums_cuda.h), so its result must be
// exact, whatever the order of its sums. Some hundred elements are compared, the rest is looked at for
// numbers that were not written. A plan whose numbers are off by no more than rounding errors is not wrong:
// its arithmetic is another one than sums of products (Winograd's transforms). It is used, and noted.
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

/// What is wrong with a plan.
struct PlanError {
  std::string text;      ///< "3 of 256 checked numbers are wrong (number 17 is 3, not -5)"; empty: nothing
  bool inexact = false;  ///< no number is farther from the right one than kRoundingError
};

// These two wait for the plan, on the current device. They throw Error(device) if the plan fails, or if there
// is too little memory. Thread-safe; one plan is checked at a time.

PlanError error_of_plan(const PlanSpec& spec, std::size_t workspace_bytes, RunConvolution run);
PlanError error_of_plan(const ProductShape& shape, std::size_t workspace_bytes, RunProduct run);

// The seconds of a run on the same operands, as part of a graph: the best of a few. If a first run takes much
// longer than `best`, its time. These wait and throw as the two above.

double seconds_of_plan(const PlanSpec& spec, std::size_t workspace_bytes, double best, RunConvolution run);
double seconds_of_plan(const ProductShape& shape, std::size_t workspace_bytes, double best, RunProduct run);

/// Whether the plan may be used: it is right, or inexact. Notes wrong and inexact ones
/// (chosen_algorithms_cuda.h).
bool is_right(const std::string& library, const std::string& operation, const std::string& algorithm,
              const PlanError& error);

/// Frees the memory of all checks, which is kept for the next one.
void free_check_memory();

}  // namespace lockstep::cuda
