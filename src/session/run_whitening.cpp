// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/run_whitening.h"

#include <filesystem>

#include "core/error.h"
#include "data/reader_dataset.h"
#include "data/whitening.h"
#include "io/atomic_file.h"

namespace lockstep {

namespace {
std::string name_of_file(const std::string& input) {
  return "whitening" + (input.empty() ? "" : "-" + input) + ".npy";
}
}  // namespace

void add_whitening(const Dataset& data, KeptFiles& kept) {
  for (const DatasetPart& part : data.parts())
    if (const auto& values = part.data->stages().whitening().whitening())
      kept.emplace(name_of_file(part.name), whitening_file(*values));
}

Whitening kept_whitening(const std::string& run_dir, const std::string& input, const KeptFiles* kept) {
  const std::string path = run_dir + "/" + name_of_file(input);
  if (kept != nullptr)
    if (const auto found = kept->find(name_of_file(input)); found != kept->end())
      return whitening_from_file(found->second, path);
  std::error_code code;
  if (std::filesystem::symlink_status(path, code).type() == std::filesystem::file_type::not_found)
    throw Error(ErrorKind::data, "is missing: the model was trained with its whitening", path,
                "Restore the file, or leave out data.whiten if the run began without it.");
  return whitening_from_file(read_whole_file(path, ErrorKind::data), path);
}

}  // namespace lockstep
