// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// data.stage_to: the files of a run are copied to a disk of each node before they are opened.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/params.h"

namespace lockstep {

struct DataOptions;

struct StageOptions {
  std::string to;     ///< as written; empty: files are not copied
  std::string where;  ///< its position
  bool keep = false, verify = true;
  int threads = 4;  ///< of each rank
};

/// The options of section data that this is about.
std::span<const ParamSpec> stage_table();
bool is_stage_key(std::string_view key);
StageOptions stage_options(const Node& section);

/// The files that the readers of both sets open, of all inputs, each once. Throws Error(config) if a reader
/// does not say which, and what the readers throw.
std::vector<std::string> files_of_sets(const DataOptions& options, const std::string& base_directory);
/// Throws Error(config) if a copy of one of them lacks what the file has, because it takes values from other
/// files. Looks at each `parts`-th file, from number `part` on: ranks share them.
void check_stage_files(const DataOptions& options, const std::string& base_directory, int part, int parts);

}  // namespace lockstep
