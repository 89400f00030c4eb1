// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How a file stores samples in chunks, and how fast one core unpacks them. For advice (`lockstep data`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "config/params.h"

namespace lockstep {

struct StoredChunks {
  std::string where;         ///< "x.h5, dataset image"
  std::int64_t samples = 0;  ///< of the file
  std::int64_t samples_per_chunk = 1;
  double chunk_bytes = 0;     ///< unpacked
  bool whole_samples = true;  ///< a chunk has all values of its samples
  bool compressed = false;    ///< by any filter
  double unpack_seconds = 0;  ///< for a chunk on one core, measured; 0: not compressed, or not known
  double samples_per_second() const {
    return unpack_seconds > 0 ? static_cast<double>(samples_per_chunk) / unpack_seconds : 0;
  }
};

/// The chunks of the features in the first file of a set of this format. Nothing if they are not stored in
/// chunks. Unpacks chunks for about a fifth of a second. Throws Error(data).
std::optional<StoredChunks> stored_chunks(std::string_view format, const Params& params,
                                          const std::string& base_directory);

}  // namespace lockstep
