// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal: numbers of a training set that a run keeps as a .npy file of float32 (session/kept_data.h).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct KeptArray {
  std::vector<std::int64_t> extents;  ///< at least one
  std::vector<float> values;
};

/// `bytes` may be a .npy file.
bool is_npy(std::string_view bytes);
/// The bytes of a file with these parts, one after the other.
std::string kept_array_file(std::span<const std::int64_t> extents,
                            std::initializer_list<std::span<const float>> parts);
/// Reads what kept_array_file() gives. Throws Error(data) at `where`: it "is no `what`: ...".
KeptArray kept_array(std::string_view bytes, std::string_view what, const std::string& where);

}  // namespace lockstep
