// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// For libFuzzer, whose main calls this: the parser is named by the environment (run_libfuzzer.sh).
#include <cstdio>
#include <cstdlib>

#include "fuzz/parsers/parsers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const lockstep::fuzz::Parser* const parser = [] {
    const char* const name = std::getenv("LOCKSTEP_PARSER");
    const auto* const found = name == nullptr ? nullptr : lockstep::fuzz::find_parser(name);
    if (found == nullptr) {
      std::fputs("LOCKSTEP_PARSER must name a parser\n", stderr);
      std::exit(2);
    }
    return found;
  }();
  lockstep::fuzz::run(*parser, {data, size});
  return 0;
}
