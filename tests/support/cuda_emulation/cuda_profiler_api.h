// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Stands for CUDA's header of this name. LOCKSTEP_EMULATED_PROFILER=1 prints what a profiler would be told.
#pragma once

#include "cuda_runtime.h"

cudaError_t cudaProfilerStart();
cudaError_t cudaProfilerStop();
