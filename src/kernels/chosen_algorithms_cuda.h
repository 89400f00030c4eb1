// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which algorithm a library has chosen for each operation (private to this room). The same libraries choose
// by heuristics, which differ between versions and GPUs, and the algorithm decides the last bits.
#pragma once

#include <string>

namespace lockstep::cuda {

// All functions are thread-safe.

/// Whoever makes a primitive notes its operations, also those whose algorithm was chosen before.
void note_algorithm(const std::string& operation, const std::string& algorithm);
/// "operation: algorithm", one line each, sorted.
std::string chosen_algorithms();
/// Whoever finds an algorithm wrong notes "operation: algorithm of library: error".
void note_wrong_algorithm(const std::string& line);
/// One line each, sorted.
std::string wrong_algorithms();
/// The same of an algorithm whose numbers are off by rounding errors where sums of products are exact.
void note_inexact_algorithm(const std::string& line);
std::string inexact_algorithms();
/// For tests, which report what was noted since.
void forget_algorithms();

}  // namespace lockstep::cuda
