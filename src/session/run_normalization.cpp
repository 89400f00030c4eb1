// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/run_normalization.h"

#include <filesystem>

#include "core/error.h"
#include "data/normalization.h"
#include "data/reader_dataset.h"
#include "io/atomic_file.h"

namespace lockstep {

namespace {
std::string name_of_file(const std::string& input, NormalizeBy by) {
  return "normalization" + (input.empty() ? "" : "-" + input) +
         (by == NormalizeBy::elements ? ".npy" : ".txt");
}
}  // namespace

std::string normalization_path(const std::string& run_dir, const std::string& input, NormalizeBy by) {
  return run_dir + "/" + name_of_file(input, by);
}

void add_normalization(const Dataset& data, KeptFiles& kept) {
  for (const DatasetPart& part : data.parts())
    if (const auto& values = part.data->stages().conversion().normalization())
      kept.emplace(name_of_file(part.name, part.data->stages().conversion().normalize_by()),
                   normalization_text(*values));
}

std::string kept_normalization(const std::string& run_dir, const std::string& input, NormalizeBy by,
                               const KeptFiles* kept) {
  if (kept != nullptr)
    if (const auto found = kept->find(name_of_file(input, by)); found != kept->end()) return found->second;
  const std::string path = normalization_path(run_dir, input, by);
  std::error_code code;
  if (std::filesystem::symlink_status(path, code).type() == std::filesystem::file_type::not_found)
    throw Error(ErrorKind::data, "is missing: the model was trained with its means and standard deviations",
                path, "Restore the file, or leave out data.normalize if the run began without it.");
  return read_whole_file(path, ErrorKind::data);
}

}  // namespace lockstep
