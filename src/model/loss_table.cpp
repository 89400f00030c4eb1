// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/loss.h"

namespace lockstep {

// Lockstep's own losses, one per line. Each entry is defined in its file in losses/.
#define LOCKSTEP_LOSSES(LOSS)     \
  LOSS(kSoftmaxCrossEntropyEntry) \
  LOSS(kSigmoidCrossEntropyEntry) \
  LOSS(kMeanSquaredErrorEntry)    \
  LOSS(kMeanAbsoluteErrorEntry)   \
  LOSS(kHuberEntry)               \
  LOSS(kLogCoshEntry)             \
  LOSS(kHingeEntry)               \
  LOSS(kDiceEntry)                \
  LOSS(kFocalEntry)               \
  LOSS(kKlDivergenceEntry)        \
  LOSS(kMeanEntry)

LOCKSTEP_TABLE(LossEntry, loss_table, "loss", LOCKSTEP_LOSSES)

}  // namespace lockstep
