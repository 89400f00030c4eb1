// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The format safetensors: 8 bytes with the length of the header (little endian), the header as a JSON object,
// the data. The header has for each tensor its dtype, shape and data_offsets [begin, end) in the data, and
// texts under __metadata__. Nothing in such a file is executed. One process.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "exchange/foreign_tensor.h"

namespace lockstep {

/// The longest header that is read, as in the format's own library.
inline constexpr std::size_t kMostSafetensorsHeaderBytes = 100'000'000;

/// What stands before the data: length and header, padded with spaces to a multiple of 8 bytes. The data are
/// those of `tensors` in their order; put wide types first, so that all data are aligned.
std::string safetensors_header(std::span<const ForeignTensor> tensors,
                               std::span<const std::pair<std::string, std::string>> metadata);

/// Reads a whole file. Every byte of the data must belong to exactly one tensor. Throws Error(data) for a
/// file that is damaged, made to harm, or has a type that Lockstep does not have.
ForeignFile read_safetensors(const std::string& path);
/// Reads the contents of a file; `path` is for messages.
ForeignFile safetensors_from(std::string_view contents, const std::string& path);

}  // namespace lockstep
