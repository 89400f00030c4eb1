// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Replaces kernels/cudnn_attention_cuda.cpp on the emulated GPU. A plan is the one that the real cuDNN
// selects for an H200 (described_attention.h). It computes, operation by operation in double, the graph that
// cuDNN reports, so a wrong graph or descriptor produces wrong numbers. Numbers of 16-bit tensors are
// rounded.
#pragma once

#include <vector>

#include "described_attention.h"

namespace lockstep {

struct PlannedAttention {
  cuda::AttentionPlanSpec spec;
  AttentionFacts facts;
};
/// All plans that the program has requested so far, in order.
std::vector<PlannedAttention> planned_attentions();

}  // namespace lockstep
