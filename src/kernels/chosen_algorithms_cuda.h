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
/// Whoever finds an algorithm of a library wrong notes what is wrong.
void note_wrong_algorithm(const std::string& library, const std::string& operation,
                          const std::string& algorithm, const std::string& error);
/// "operation: algorithm of library: error", one line each, sorted.
std::string wrong_algorithms();
/// For tests, which report what was noted since.
void forget_algorithms();

}  // namespace lockstep::cuda
