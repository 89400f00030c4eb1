// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The options of the section `model` that heads_from_config() reads (heads.h). Only files with a table that
// has them include this header.
#pragma once

#include "config/option.h"

namespace lockstep {

struct HeadsOptions {
  Node loss, sample_weights, heads;
};
inline constexpr ParamSpec kHeadsOptions[] = {
    option<&HeadsOptions::loss>(
        "loss", "softmax_cross_entropy", {},
        "Loss on the output of the last layer, which training minimizes; see the list of losses."),
    option<&HeadsOptions::sample_weights>("sample_weights", "null", in_words("name, column or null"),
                                          "Weights of the samples in the loss: a target of the data "
                                          "(data.targets), or a label column, 0-based. "
                                          "null: all 1."),
    option<&HeadsOptions::heads>("heads", "null", in_words("list or null"),
                                 "Instead of loss: several outputs with a loss each; see the options of a "
                                 "head. Training minimizes the "
                                 "sum of weight x loss."),
};

}  // namespace lockstep
