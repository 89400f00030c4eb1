// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which algorithm a library has chosen for each operation (private to this room). The same libraries choose
// by heuristics, which differ between versions and GPUs, and the algorithm decides the last bits.
#pragma once

#include <string>

namespace lockstep::cuda {

/// Thread-safe. The same operation may be noted again.
void note_algorithm(const std::string& operation, const std::string& algorithm);
/// "operation: algorithm", one line each, sorted.
std::string chosen_algorithms();

}  // namespace lockstep::cuda
