// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <vector>

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

#define LOCKSTEP_DECLARE(entry) extern const LossEntry entry;
LOCKSTEP_LOSSES(LOCKSTEP_DECLARE)
#undef LOCKSTEP_DECLARE

namespace {
std::vector<LossEntry>& entries() {
#define LOCKSTEP_LIST(entry) entry,
  static std::vector<LossEntry> table = {LOCKSTEP_LOSSES(LOCKSTEP_LIST)};
#undef LOCKSTEP_LIST
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
