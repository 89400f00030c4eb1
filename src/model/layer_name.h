// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Names of layers. A layer's name is the beginning of its variables' names, which are paths in checkpoints:
// parts between '/' are groups of an HDF5 file. Messages, patterns and "layer:1" use names, too.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

inline constexpr int kMostNameParts = 16;
inline constexpr std::size_t kLongestName = 200;
inline constexpr std::string_view kLayerNameRule =
    "A name has letters, digits and any of _ - . + @, in at most 16 parts with '/' between them, such as "
    "block1/conv2; no part is empty, . or .., and a name has at most 200 characters.";

/// What is wrong with the name; empty for a valid one.
std::string wrong_in_layer_name(std::string_view name);
/// The text for a message: control characters and other bytes that are not ASCII as \xNN, a long one cut.
std::string printable(std::string_view text);

}  // namespace lockstep
