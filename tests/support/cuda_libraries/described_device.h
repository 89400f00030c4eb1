// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Private to this folder's files that include cuDNN.
#pragma once

#include "described_gpu.h"
#include "kernels/cudnn_plan_cuda.h"

namespace lockstep {

/// The description of an H200.
const cuda::Descriptor& described_device();

EngineFacts engine_facts(const cuda::FoundPlan& found);

}  // namespace lockstep
