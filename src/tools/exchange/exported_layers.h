// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "exchange/pytorch_layout.h"

namespace lockstep {

/// Name and kind of the layers of a configuration, in its order. `where` is for messages. None for an empty
/// text, which files of weights without a run have.
std::vector<LayerKind> layer_kinds(const std::string& config, const std::string& where);

}  // namespace lockstep
