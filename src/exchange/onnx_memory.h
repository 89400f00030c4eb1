// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to exchange: what an ONNX file will take of memory when protobuf reads it. Two bytes of a file can
// be an object of a hundred.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// Throws Error(data) if the messages of the file, of at most 2 GiB, would take more than an InputBudget
/// allows. False: the file is damaged. `path` is for messages.
bool take_onnx_memory(std::string_view contents, const std::string& path);

}  // namespace lockstep
