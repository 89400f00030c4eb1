// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The configuration as a JSON schema (draft 7), for editors, from the tables that check a configuration.
// The build writes it as config.schema.json (write_reference.cpp), which is installed.
//
// It checks names, types, choices and ranges: what one value says alone. What values say together, and what
// plugins add, the program knows better (`lockstep check`).
#pragma once

#include <string>

namespace lockstep {

std::string json_schema();

}  // namespace lockstep
