// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether an algorithm that splits the inner dimension of a product adds all of its parts (private to this
// room). A product of ones is the inner dimension itself, so one wrong part shows.
#pragma once

#include <cuda_runtime.h>

#include <span>

#include "core/function_ref.h"
#include "kernels/cublaslt_cuda.h"

namespace lockstep::cuda {

/// Runs the product on device memory of its shape, in the stream; bias is null if the shape has none.
using RunProduct =
    FunctionRef<void(cudaStream_t stream, const void* a, const void* b, const void* bias, void* d)>;

/// Multiplies ones, and then ones of which only the last few of the inner dimension are not zero, since a
/// 16-bit result is too coarse to show the loss of a few of many. False if any element is wrong. Allocates
/// the operands for the call. Throws Error(device).
bool adds_all_parts(const ProductShape& shape, RunProduct run);

/// The first algorithm of a list, best first, that does not split, or whose parts are all added; -1: none.
/// `splits`: the number of parts of each.
int first_exact(std::span<const int> splits, FunctionRef<bool(int index)> adds_all);

}  // namespace lockstep::cuda
