// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal: fields of a JSON object, read in one pass without an object for each value.
//
// nlohmann-json reads and writes all JSON: strings need escaping, and doubles must read back exactly.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// The value of a field: numbers, alone or in nested arrays of equal lengths, or one text.
struct JsonField {
  std::string_view name;
  bool takes_null = false;  ///< null and NaN stand for a missing number; otherwise they are errors
  bool found = false;
  bool is_null = false;  ///< the whole value, with takes_null
  bool is_text = false;
  bool is_whole = true;               ///< all numbers are written as integers (or true, false)
  std::vector<double> numbers;        ///< in order; NaN: null
  std::vector<std::int64_t> extents;  ///< of the nested arrays; empty: one number
  std::string text;
};

/// Reads the fields with the names in `fields` from `line`, which must be one JSON object (RFC 8259). Other
/// fields are skipped. Throws Error(data) with the place "column N" (from 1; of damage) or without one.
void read_json_fields(std::string_view line, std::span<JsonField> fields);

}  // namespace lockstep
