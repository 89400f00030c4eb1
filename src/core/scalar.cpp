// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/scalar.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace lockstep {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Removes the leading decimal digits of `text`. Returns their number.
std::size_t skip_digits(std::string_view& text) {
  const auto count =
      static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
  text.remove_prefix(count);
  return count;
}

bool skip_sign(std::string_view& text) {
  if (text.empty() || (text.front() != '+' && text.front() != '-')) return false;
  text.remove_prefix(1);
  return true;
}

template <std::size_t N>
bool one_of(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

// Returns the base of 0x and 0o integers, which have no sign, and removes the prefix.
int base_of(std::string_view& text) {
  const int base = text.starts_with("0x") ? 16 : text.starts_with("0o") ? 8 : 10;
  if (base != 10) text.remove_prefix(2);
  return base;
}

bool is_integer(std::string_view text) {
  const int base = base_of(text);
  if (base == 10) {
    skip_sign(text);
    return skip_digits(text) > 0 && text.empty();
  }
  const std::string_view digits = base == 8 ? "01234567" : "0123456789abcdefABCDEF";
  return !text.empty() && text.find_first_not_of(digits) == std::string_view::npos;
}

bool is_decimal(std::string_view text) {
  skip_sign(text);
  std::size_t digits = skip_digits(text);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    digits += skip_digits(text);
  }
  if (digits == 0) return false;
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    skip_sign(text);
    if (skip_digits(text) == 0) return false;
  }
  return text.empty();
}

bool is_non_finite(std::string_view text) {
  if (one_of<3>(text, {".nan", ".NaN", ".NAN"})) return true;
  skip_sign(text);
  return one_of<3>(text, {".inf", ".Inf", ".INF"});
}

}  // namespace

ScalarKind kind_of_scalar(std::string_view text) {
  if (one_of<5>(text, {"", "~", "null", "Null", "NULL"})) return ScalarKind::null;
  if (one_of<6>(text, {"true", "True", "TRUE", "false", "False", "FALSE"})) return ScalarKind::boolean;
  if (is_integer(text)) return ScalarKind::integer;
  if (is_decimal(text)) return ScalarKind::real;
  if (is_non_finite(text)) return ScalarKind::non_finite;
  return ScalarKind::text;
}

std::string_view name_of(ScalarKind kind) {
  switch (kind) {
    case ScalarKind::null:
      return "null";
    case ScalarKind::boolean:
      return "a boolean";
    case ScalarKind::integer:
      return "a whole number";
    case ScalarKind::real:
      return "a number";
    case ScalarKind::non_finite:
      return "not a finite number";
    case ScalarKind::text:
      return "text";
  }
  return "unknown";
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  if (!is_integer(text)) return std::nullopt;
  const int base = base_of(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_real(std::string_view text) {
  if (!is_decimal(text)) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace lockstep
