// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What an unquoted scalar means: the rules of YAML 1.2's core schema (https://yaml.org/spec/1.2.2, 10.3.2).
// So `yes`, `on` and `1_000` are text, `1e-3` is a number. Infinities and NaN are recognised in order to be
// refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep {

enum class ScalarKind { null, boolean, integer, real, non_finite, text };

/// Of an unquoted scalar; a quoted one is always text.
ScalarKind kind_of_scalar(std::string_view text);
/// "a whole number", "text" ...: for messages.
std::string_view name_of(ScalarKind kind);

/// Decimal, 0x and 0o integers. Empty if `text` is none or does not fit into 64 bits.
std::optional<std::int64_t> parse_integer(std::string_view text);
/// Decimal integers and floating-point numbers. Empty if `text` is none or is out of the range of double.
std::optional<double> parse_real(std::string_view text);

}  // namespace lockstep
