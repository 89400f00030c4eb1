// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs each parser over the inputs that are kept for it: replay CORPUS, with a folder per parser. No compiler
// for libFuzzer is needed.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "fuzz/parsers/parsers.h"

int main(int count, char** arguments) {
  namespace fs = std::filesystem;
  if (count != 2) return 2;
  for (const lockstep::fuzz::Parser& parser : lockstep::fuzz::parsers()) {
    int files = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(arguments[1]) / parser.name)) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
      std::printf("%s\n", entry.path().c_str());  // the last one printed is the one that fails
      std::fflush(stdout);
      lockstep::fuzz::run(parser, {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
      ++files;
    }
    if (files == 0) {
      std::fprintf(stderr, "no inputs for %s\n", std::string(parser.name).c_str());
      return 1;
    }
  }
  return 0;
}
