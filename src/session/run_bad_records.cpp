// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/run_bad_records.h"

#include <filesystem>
#include <vector>

#include "core/error.h"
#include "data/reader_dataset.h"
#include "io/atomic_file.h"

namespace lockstep {

namespace {

void add_lists(std::vector<BadRecordList>& lists, const char* set, const Dataset& data) {
  for (const DatasetPart& part : data.parts())
    if (const std::vector<BadRecord>& bad = part.data->stored().parts().left_out; !bad.empty())
      lists.push_back({set, part.name, bad});
}

}  // namespace

std::string bad_records_path(const std::string& run_dir) { return run_dir + "/bad_records.csv"; }

void keep_bad_records(const std::string& run_dir, const Dataset& train, const Dataset* eval) {
  std::vector<BadRecordList> lists;
  add_lists(lists, "train", train);
  if (eval != nullptr) add_lists(lists, "eval", *eval);
  write_file_atomically(bad_records_path(run_dir), bad_records_text(lists));
}

std::string kept_bad_records(const std::string& run_dir) {
  const std::string path = bad_records_path(run_dir);
  std::error_code code;
  if (std::filesystem::symlink_status(path, code).type() == std::filesystem::file_type::not_found)
    throw Error(ErrorKind::data, "is missing: it says which samples the run leaves out", path,
                "Restore the file, or write bad_records: stop if the run began with it.");
  return read_whole_file(path, ErrorKind::data);
}

}  // namespace lockstep
