// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Replaces CUDA's header of this name. LOCKSTEP_EMULATED_PROFILER=1 prints the calls to the profiler.
#pragma once

#include "cuda_runtime.h"

cudaError_t cudaProfilerStart();
cudaError_t cudaProfilerStop();
