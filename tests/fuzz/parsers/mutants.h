// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Mutants of kept inputs, for any compiler; libFuzzer (run_libfuzzer.sh) finds more, as it sees which paths
// an input takes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fuzz/parsers/parsers.h"

namespace lockstep::fuzz {

using Input = std::vector<std::uint8_t>;

/// One to eight changes: bits, bytes, numbers of 2 to 8 bytes, cut, repeated or removed pieces. The same for
/// the same arguments.
Input mutant(const Input& kept, std::uint64_t seed, std::uint64_t number);

struct MutantRun {
  double seconds = 0;  ///< how long new mutants are begun
  std::uint64_t seed = 1;
  std::uint64_t most = ~0ULL;  ///< mutants
};

/// Runs the parser on mutants of the kept inputs, in turn. One that ends the process, takes longer than
/// kMostSeconds or more memory than kMostBytes is written to a file, whose path is printed. Returns their
/// number.
std::uint64_t run_mutants(const Parser& parser, std::span<const Input> kept, const MutantRun& options);

inline constexpr unsigned kMostSeconds = 30;
/// Beyond what a small input may ask for (io/input_budget.h), of the whole process.
inline constexpr std::uint64_t kMostBytes = std::uint64_t{1200} << 20;

}  // namespace lockstep::fuzz
