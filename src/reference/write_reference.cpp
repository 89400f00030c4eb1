// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The build runs this program for the files that are made from the tables of options: api/options.h, which
// api and programs include, and config.schema.json. A file that is right already keeps its time, so that
// nothing is compiled again.
//
//   lockstep_write_reference FOLDER
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "io/atomic_file.h"
#include "reference/json_schema.h"
#include "reference/options_header.h"

namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  if (std::filesystem::exists(path) && lockstep::read_whole_file(path.string()) == text) return;
  std::filesystem::create_directories(path.parent_path());
  lockstep::write_file_atomically(path.string(), text);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: lockstep_write_reference FOLDER\n"), 2;
  try {
    const std::filesystem::path folder = argv[1];
    write(folder / "api" / "options.h", lockstep::options_header());
    write(folder / "config.schema.json", lockstep::json_schema());
  } catch (const std::exception& error) {
    return std::fprintf(stderr, "lockstep_write_reference: %s\n", error.what()), 1;
  }
  return 0;
}
