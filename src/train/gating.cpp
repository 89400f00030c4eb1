// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/gating.h"

#include "optim/optimizer.h"

namespace lockstep {

std::string GatingNeeds::why_graph() const {
  if (!on_host) return "a GPU's streams run the update after the whole step";
  if (clip.clips()) return "clipping (section gradients) comes before the update";
  if (clip.watch) return "train.on_nan looks at all gradients before the update";
  if (scales_loss) return "precision.loss_scale skips updates with gradients that overflow";
  if (regularizes) return "model.regularization adds to gradients before the update";
  if (shares_update)
    return "with optimizer.shard or cluster.ps ranks exchange the variables after the update";
  if (optimizer.measures()) return optimizer.subject() + " needs whole gradients";
  return {};
}

}  // namespace lockstep
