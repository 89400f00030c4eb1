// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include "core/function_ref.h"

namespace lockstep::cuda {

/// The seconds that the GPU takes for what `queue` puts into the stream. It is measured as in training: as
/// part of a graph, so launches by the host take no time. If a first run takes more than twice `best`, its
/// time, which includes launches; else the best of a few. Waits for the stream.
double seconds_of_work(cudaStream_t stream, double best, FunctionRef<void()> queue);

}  // namespace lockstep::cuda
