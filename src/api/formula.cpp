// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "api/formula.h"

#include <string>

#include "model/losses/formula_loss.h"

namespace lockstep::losses {

TrainingLoss formula(const LabelColumns& labels, const LayerOutput& output, const LossEntry& loss,
                     std::initializer_list<std::pair<std::string_view, OptionValue>> options,
                     const LossTermOptions& term) {
  const LossEntry* const known = loss_table().find(loss.name);
  // A model function is called once for each mode.
  if (known == nullptr || known->make != loss.make) loss_table().add(loss);
  return loss_term(labels, output, {std::string(loss.name), options_map(options)}, term);
}

}  // namespace lockstep::losses
