// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The tables of options as a C++ header: a struct for each layer, loss, rule, reader, ... with a member for
// each option, and a function that makes it. api/options.h is its output
// (scripts/update_docs.sh), and a test compares the two.
#pragma once

#include <string>

namespace lockstep {

std::string options_header();

}  // namespace lockstep
