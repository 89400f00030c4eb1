// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "model/losses/entries.h"

namespace lockstep {

namespace {
std::vector<LossEntry>& entries() {
  static std::vector<LossEntry> table = {
      // clang-format off
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
}  // namespace

std::span<const LossEntry> loss_table() { return entries(); }

void register_loss(const LossEntry& entry) {
  for (const LossEntry& known : entries())
    LOCKSTEP_REQUIRE(known.name != entry.name, ErrorKind::config, "a loss named '{}' exists already",
                     entry.name);
  entries().push_back(entry);
}

}  // namespace lockstep
