// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "model/losses/entries.h"

namespace lockstep {

std::span<const LossEntry> loss_table() {
  static const std::vector<LossEntry> table = {
      // clang-format off: one per line
      kSoftmaxCrossEntropyEntry,
      kSigmoidCrossEntropyEntry,
      kMeanSquaredErrorEntry,
      kMeanAbsoluteErrorEntry,
      kHuberEntry,
      kLogCoshEntry,
      kHingeEntry,
      kDiceEntry,
      kFocalEntry,
      kKlDivergenceEntry,
      kMeanEntry,
      // clang-format on
  };
  return table;
}

}  // namespace lockstep
