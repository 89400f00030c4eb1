// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep info`: build, libraries, and what this machine offers.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// One row: "oneDNN", "2.6.3".
using InfoRow = std::pair<std::string, std::string>;

/// Build, libraries as loaded, processor, cores, memory and devices as rows. Needs no MPI_Init.
std::vector<InfoRow> build_info();
/// Rows as aligned text, one per line: "oneDNN      2.6.3".
std::string info_text(std::span<const InfoRow> rows);

}  // namespace lockstep
