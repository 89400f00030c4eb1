// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Tables of embeddings for TensorBoard's page Projector: projector_config.pbtxt next to the event files names
// a file of vectors for each table, and one with a label for each row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

struct ProjectorTable {
  std::string name;  ///< as the page shows it
  std::int64_t rows = 0, columns = 0;
  std::span<const float> values;  ///< row-major
  /// Tab-separated, with a line of titles if there are several columns; empty: none.
  std::string metadata = {};
};

/// The page holds all rows in the browser.
inline constexpr std::int64_t kProjectorRows = 10000;

/// Writes `folder`/projector_config.pbtxt and the files that it names, in `folder`/projector, each
/// atomically. At most `most_rows` rows of a table, because the page holds all of them in the browser. Throws
/// Error(data).
void write_projector(const std::string& folder, std::span<const ProjectorTable> tables,
                     std::int64_t most_rows = kProjectorRows);

}  // namespace lockstep
