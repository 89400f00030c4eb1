// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep explain`: one option, layer, reader, ... in words, from the tables that check a configuration and
// from the tables of words that people bring from other frameworks.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// What `key` means: "train.batch_size", "batch_size", "conv2d", "conv2d.filters", "nn.Linear". Throws
/// Error(usage) for a word that no table has, with the nearest one.
std::string explanation(std::string_view key);
/// The names that can be explained, by kind.
std::string explanation_index();

}  // namespace lockstep
