// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The configuration as a JSON schema (draft 7), for editors, from the tables that check a configuration.
// docs/config.schema.json is its output (scripts/update_docs.sh), and a test compares the two.
//
// It checks names, types, choices and ranges: what one value says alone. What values say together, and what
// plugins add, the program knows better (`lockstep check`).
#pragma once

#include <string>

namespace lockstep {

std::string json_schema();

}  // namespace lockstep
