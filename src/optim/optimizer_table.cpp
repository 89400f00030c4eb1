// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// All optimization rules (docs/adding_an_optimizer.md).
#include "optim/optimizer_table.h"

namespace lockstep {

// The rules, one per line. Each entry is defined in its file in rules/.
#define LOCKSTEP_OPTIMIZERS(RULE)         \
  RULE(kGradientDescentOptimizer)         \
  RULE(kMomentumOptimizer)                \
  RULE(kAdamOptimizer)                    \
  RULE(kAdamWOptimizer)                   \
  RULE(kNAdamOptimizer)                   \
  RULE(kRAdamOptimizer)                   \
  RULE(kAdagradOptimizer)                 \
  RULE(kAdadeltaOptimizer)                \
  RULE(kRmsPropOptimizer)                 \
  RULE(kFtrlOptimizer)                    \
  RULE(kProximalGradientDescentOptimizer) \
  RULE(kProximalAdagradOptimizer)         \
  RULE(kAdagradDaOptimizer)               \
  RULE(kLionOptimizer)                    \
  RULE(kLarsOptimizer)                    \
  RULE(kLambOptimizer)                    \
  RULE(kMuonOptimizer)                    \
  RULE(kShampooOptimizer)

LOCKSTEP_TABLE(OptimizerEntry, optimizer_table, "optimizer", LOCKSTEP_OPTIMIZERS)

}  // namespace lockstep
