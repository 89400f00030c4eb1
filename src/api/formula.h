// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A loss given as a formula (model/losses/formula_loss.h) in a model function:
//
//   .loss = losses::formula(labels, y, kPinball, {{"quantile", 0.9}})
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>

#include "api/model_builder.h"

namespace lockstep {
struct LossEntry;  // lockstep/loss.h, with loss_formula()
}

namespace lockstep::losses {

/// The loss of an entry that loss_formula() made, with these options. It registers the entry, so that the
/// configuration of the run may name it. Throws Error(config) if another loss has its name.
TrainingLoss formula(const LabelColumns& labels, const LayerOutput& output, const LossEntry& loss,
                     std::initializer_list<std::pair<std::string_view, OptionValue>> options = {},
                     const LossTermOptions& term = {});

}  // namespace lockstep::losses
