// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/run_normalization.h"

#include <filesystem>

#include "core/error.h"
#include "data/normalization.h"
#include "io/atomic_file.h"

namespace lockstep {

std::string normalization_path(const std::string& run_dir, const std::string& input) {
  return run_dir + "/normalization" + (input.empty() ? "" : "-" + input) + ".txt";
}

void keep_normalization(const std::string& run_dir, const Dataset& data) {
  const auto keep = [&](const Dataset& set, const std::string& input) {
    if (const Normalization* values = set.normalization())
      write_file_atomically(normalization_path(run_dir, input), normalization_text(*values));
  };
  keep(data, "");
  for (const auto& sets : {data.inputs(), data.targets()})
    for (const JoinedInput& set : sets) keep(*set.data, set.name);
}

std::string kept_normalization(const std::string& run_dir, const std::string& input) {
  const std::string path = normalization_path(run_dir, input);
  std::error_code code;
  if (std::filesystem::symlink_status(path, code).type() == std::filesystem::file_type::not_found)
    throw Error(ErrorKind::data, "is missing: the model was trained with its means and standard deviations",
                path, "Restore the file, or leave out data.normalize if the run began without it.");
  return read_whole_file(path, ErrorKind::data);
}

}  // namespace lockstep
