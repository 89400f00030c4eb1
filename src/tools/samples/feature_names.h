// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the values of a table's samples are called: by the columns they come from.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace lockstep {

/// A name per value of a sample: "area", or "district = north" for a value of a category. Empty if the set is
/// no table with named columns, or if its samples are no rows of values.
std::vector<std::string> feature_names(const Dataset& data);

/// "column area" if there are names, else "channel 2".
std::string channel_name(const std::vector<std::string>& names, std::size_t channel);

}  // namespace lockstep
