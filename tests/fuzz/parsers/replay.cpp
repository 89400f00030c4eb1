// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs parsers over the inputs that are kept for them, with any compiler:
//
//     parsers_replay CORPUS [PARSER ...]                         # each kept input of CORPUS/PARSER
//     parsers_replay CORPUS --mutants SECONDS [--seed N] [PARSER ...]   # and mutants of them, so long for
//     each
//
// The environment variable LOCKSTEP_FUZZ_SECONDS has precedence over SECONDS.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/parsers/mutants.h"
#include "fuzz/parsers/parsers.h"

namespace {

namespace fs = std::filesystem;
using lockstep::fuzz::Input;

struct Arguments {
  fs::path corpus;
  std::vector<std::string> names;  ///< of parsers; empty: all
  lockstep::fuzz::MutantRun mutants;
};

Arguments arguments_of(int count, char** words) {
  Arguments arguments{.corpus = words[1]};
  for (int i = 2; i < count; ++i) {
    if (std::strcmp(words[i], "--mutants") == 0 && i + 1 < count)
      arguments.mutants.seconds = std::atof(words[++i]);
    else if (std::strcmp(words[i], "--seed") == 0 && i + 1 < count)
      arguments.mutants.seed = std::strtoull(words[++i], nullptr, 10);
    else
      arguments.names.emplace_back(words[i]);
  }
  if (const char* seconds = std::getenv("LOCKSTEP_FUZZ_SECONDS");
      seconds != nullptr && arguments.mutants.seconds > 0)
    arguments.mutants.seconds = std::atof(seconds);
  return arguments;
}

/// In the order of their names.
std::vector<fs::path> inputs_of(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

/// False if there are no inputs.
bool replay(const lockstep::fuzz::Parser& parser, const Arguments& arguments) {
  std::vector<Input> kept;
  for (const fs::path& path : inputs_of(arguments.corpus / parser.name)) {
    std::ifstream file(path, std::ios::binary);
    kept.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    std::printf("%s\n", path.c_str());  // the last one printed is the one that fails
    std::fflush(stdout);
    lockstep::fuzz::run(parser, kept.back());
  }
  if (kept.empty()) return false;
  if (arguments.mutants.seconds > 0)
    std::printf(
        "%s: %llu mutants\n", std::string(parser.name).c_str(),
        static_cast<unsigned long long>(lockstep::fuzz::run_mutants(parser, kept, arguments.mutants)));
  return true;
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) return 2;
  const Arguments arguments = arguments_of(count, words);
  std::size_t found = 0;
  for (const lockstep::fuzz::Parser& parser : lockstep::fuzz::parsers()) {
    if (!arguments.names.empty() && std::ranges::count(arguments.names, parser.name) == 0) continue;
    ++found;
    if (!replay(parser, arguments)) {
      std::fprintf(stderr, "no inputs for %s\n", std::string(parser.name).c_str());
      return 1;
    }
  }
  return found == 0 || found < arguments.names.size() ? 2 : 0;
}
