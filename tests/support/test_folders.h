// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the tests' files are. One object file knows the paths, so that all others are the same in each clone.
#pragma once

#include <string>

namespace lockstep {

/// A file of tests/vectors.
std::string test_vectors(const std::string& file);
/// A file of tests/reference; without a name the folder.
std::string test_reference(const std::string& file = {});
/// The folder data/ of the repository.
std::string shipped_data();
/// The folder of the option LOCKSTEP_EXTRA_DATA; empty if it is not set.
std::string extra_data();

}  // namespace lockstep
