// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The meaning of an unquoted scalar, by the rules of YAML 1.2's core schema (https://yaml.org/spec/1.2.2,
// 10.3.2): `yes`, `on` and `1_000` are text, `1e-3` is a number. Infinities and NaN are recognised so that
// they can be refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep {

enum class ScalarKind { null, boolean, integer, real, non_finite, text };

/// The kind of an unquoted scalar; a quoted one is always text.
ScalarKind kind_of_scalar(std::string_view text);
/// The name of a kind for messages: "a whole number", "text", ...
std::string_view name_of(ScalarKind kind);

/// Parses decimal, 0x and 0o integers. Returns nothing if `text` is not an integer or does not fit into 64
/// bits.
std::optional<std::int64_t> parse_integer(std::string_view text);
/// Parses decimal integers and floating-point numbers. Returns nothing if `text` is not a number or is out of
/// the range of double.
std::optional<double> parse_real(std::string_view text);

}  // namespace lockstep
