// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "test_folders.h"

namespace lockstep {

std::string test_vectors(const std::string& file) { return LOCKSTEP_SOURCE "/tests/vectors/" + file; }

std::string test_reference(const std::string& file) { return LOCKSTEP_SOURCE "/tests/reference/" + file; }

std::string shipped_data() { return LOCKSTEP_SOURCE "/data"; }

std::string extra_data() { return LOCKSTEP_EXTRA_DATA; }

}  // namespace lockstep
