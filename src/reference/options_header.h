// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The tables of options as a C++ header: a struct for each layer, loss, rule, reader, ... with a member for
// each option, and a function that makes it. The build writes it as api/options.h (write_reference.cpp).
#pragma once

#include <string>

namespace lockstep {

std::string options_header();

}  // namespace lockstep
