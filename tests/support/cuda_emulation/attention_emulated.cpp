// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Replaces kernels/cudnn_attention_cuda.cpp on the emulated GPU: there is no cuDNN, so own kernels compute
// attention, as on a GPU before Hopper.
#include "kernels/cudnn_attention_cuda.h"

namespace lockstep::cuda {

std::shared_ptr<const AttentionPlan> attention_plan_for(const AttentionPlanSpec&) { return nullptr; }

}  // namespace lockstep::cuda
