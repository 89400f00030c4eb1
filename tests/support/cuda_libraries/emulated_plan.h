// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Replaces kernels/cudnn_cuda.cpp on the emulated GPU, so that convolution_cuda.cpp itself runs there. A plan
// is the one that the real cuDNN selects for an H200 (described_gpu.h). It computes, with plain loops, the
// operation that cuDNN reports, so a wrong descriptor produces wrong numbers. It requests the workspace that
// cuDNN needs and writes all of it, so a workspace that is too small or overlaps is detected.
#pragma once

#include <vector>

#include "described_gpu.h"

namespace lockstep {

struct PlannedConvolution {
  cuda::PlanSpec spec;
  PlanFacts facts;
};
/// All plans that the program has requested so far, in order.
std::vector<PlannedConvolution> planned_convolutions();

}  // namespace lockstep
