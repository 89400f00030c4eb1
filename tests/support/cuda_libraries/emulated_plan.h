// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Stands in for kernels/cudnn_cuda.cpp on the emulated GPU, so that convolution_cuda.cpp itself runs there: a
// plan is what the real cuDNN would take on an H200 (described_gpu.h), and computes with plain loops what
// cuDNN says that it was told: a wrong descriptor gives wrong numbers. It asks for the workspace that cuDNN
// wants and writes all of it, so one that is too small or overlaps is seen.
#pragma once

#include <vector>

#include "described_gpu.h"

namespace lockstep {

struct PlannedConvolution {
  cuda::PlanSpec spec;
  PlanFacts facts;
};
/// All plans that the program was given so far, in order.
std::vector<PlannedConvolution> planned_convolutions();

}  // namespace lockstep
