// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The losses, one entry each; loss_table.cpp lists them.
#pragma once

#include "model/loss.h"

namespace lockstep {

extern const LossEntry kSoftmaxCrossEntropyEntry;
extern const LossEntry kSigmoidCrossEntropyEntry;
extern const LossEntry kMeanSquaredErrorEntry;
extern const LossEntry kMeanAbsoluteErrorEntry;
extern const LossEntry kHuberEntry;
extern const LossEntry kLogCoshEntry;
extern const LossEntry kHingeEntry;
extern const LossEntry kDiceEntry;
extern const LossEntry kFocalEntry;
extern const LossEntry kKlDivergenceEntry;
extern const LossEntry kMeanEntry;

/// focal with activation: softmax.
std::unique_ptr<Loss> make_softmax_focal(const Params& params);

}  // namespace lockstep
