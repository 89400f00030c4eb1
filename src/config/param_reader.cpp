// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "config/param_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "config/synonyms.h"

namespace lockstep {

namespace {

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

template <typename Piece>
void split(std::string_view text, char separator, Piece piece) {
  while (true) {
    const auto end = text.find(separator);
    piece(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// For lists and maps returns `non_finite`, which matches no option type.
ScalarKind kind_of(const Node& node) {
  if (node.kind == Node::Kind::null) return ScalarKind::null;
  if (node.kind != Node::Kind::scalar) return ScalarKind::non_finite;
  return node.quoted ? ScalarKind::text : kind_of_scalar(node.text);
}

/// Words of YAML 1.1 and Python.
std::string boolean_advice(const Node& node) {
  const std::string word = lower_case(node.text);
  for (const std::string_view yes : {"yes", "on", "y", "1", "true"})
    if (word == yes) return "Write true.";
  for (const std::string_view no : {"no", "off", "n", "0", "false", "none"})
    if (word == no) return "Write false.";
  return {};
}

/// Other ways to write a number: in quotes, 1_000, 1e3, 10%.
std::string number_advice(const Node& node) {
  if (node.kind != Node::Kind::scalar || node.text.size() > 40) return {};
  if (lower_case(node.text) == "none" && !node.quoted) return "Write null.";
  if (node.quoted && parse_real(node.text)) return "Remove the quotes.";
  const auto real = parse_real(node.text);
  if (real && std::abs(*real) < 1e15 && *real == std::floor(*real))
    return fmt::format("Write {}.", static_cast<std::int64_t>(*real));
  std::string digits = node.text;
  std::erase(digits, '_');
  if (digits != node.text && parse_real(digits)) return fmt::format("Write {}.", digits);
  if (digits.ends_with('%') && parse_real(std::string_view(digits).substr(0, digits.size() - 1)))
    return fmt::format("Write {}.", *parse_real(std::string_view(digits).substr(0, digits.size() - 1)) / 100);
  return {};
}

}  // namespace

// Tables are part of the program, so an invalid default is a bug; the type check finds it.
Node parse_fallback(std::string_view text) {
  Node node;
  if (text == "{}") {
    node.kind = Node::Kind::map;
  } else if (text.starts_with('[') && text.ends_with(']')) {
    node.kind = Node::Kind::list;
    const std::string_view inside = trimmed(text.substr(1, text.size() - 2));
    if (!inside.empty())
      split(inside, ',',
            [&](std::string_view item) { node.items.push_back(Node::scalar(std::string(item))); });
  } else {
    node = Node::scalar(std::string(text));
    // An empty default means empty text, not null.
    node.quoted = text.empty();
  }
  return node;
}

std::optional<double> plain_number(const Node& node, const ParamSpec& spec, const std::string& subject,
                                   const std::string& where) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const bool is_name = kind_of(node) == ScalarKind::text && !node.quoted && !node.text.empty() &&
                       std::ranges::all_of(node.text, is_letter) && lower_case(node.text) != "none";
  if (is_name || node.kind == Node::Kind::map) return std::nullopt;
  ParamSpec number = spec;
  number.range = spec.range.of_numbers();
  return ParamReader(number, subject, where).real(node);
}

bool may_be_null(const ParamSpec& spec) { return spec.fallback == "null" || spec.range.takes_null(); }

bool means_default(const Node& node, const ParamSpec& spec) {
  return is_null(node) && !node.text.empty() && !may_be_null(spec) && spec.fallback != kRequired;
}

namespace {

/// What a message shows of a value: a file that is no YAML is one text.
std::string shortened(const std::string& text) {
  constexpr std::size_t kMost = 60;
  std::size_t end = std::min(text.size(), kMost);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + (end < text.size() ? "..." : "");
}

}  // namespace

std::string description(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "null";
    case Node::Kind::list:
      return fmt::format("a list of {}", node.items.size());
    case Node::Kind::map:
      return "a map";
    case Node::Kind::scalar:
      break;
  }
  const std::string text = shortened(node.text);
  return node.quoted ? fmt::format("the text \"{}\"", text) : fmt::format("'{}'", text);
}

bool ParamReader::boolean(const Node& node) const {
  if (kind_of(node) != ScalarKind::boolean) wrong_type(node, "true or false", boolean_advice(node));
  return node.text[0] == 't' || node.text[0] == 'T';
}

std::int64_t ParamReader::integer(const Node& node) const {
  if (kind_of(node) != ScalarKind::integer) wrong_type(node, "a whole number", number_advice(node));
  const auto value = parse_integer(node.text);
  if (!value) {
    check_number(node, parse_real(node.text).value_or(0));
    fail(node, fmt::format("{} does not fit into 64 bits", node.text));
  }
  check_number(node, static_cast<double>(*value));
  return *value;
}

double ParamReader::real(const Node& node) const {
  const ScalarKind kind = kind_of(node);
  if (kind != ScalarKind::integer && kind != ScalarKind::real)
    wrong_type(node, "a finite number",
               node.kind == Node::Kind::map ? "This option takes no schedule." : number_advice(node));
  const auto whole = kind == ScalarKind::integer ? parse_integer(node.text) : std::nullopt;  // also 0x10
  const auto value = whole ? std::optional(static_cast<double>(*whole)) : parse_real(node.text);
  if (!value) {
    const double infinity = std::numeric_limits<double>::infinity();
    check_number(node, node.text.starts_with('-') ? -infinity : infinity);
    fail(node, fmt::format("{} is out of the range of a double", node.text));
  }
  check_number(node, *value);
  return *value;
}

std::string ParamReader::string(const Node& node) const {
  // A choice is text even if it looks like another type: "true|false|auto".
  const std::vector<std::string_view> choices = spec_.range.choices();
  if (node.kind == Node::Kind::scalar &&
      std::find(choices.begin(), choices.end(), node.text) != choices.end())
    return node.text;
  if (kind_of(node) != ScalarKind::text)
    wrong_type(node, "text",
               node.kind == Node::Kind::scalar ? "Put it in quotes if it is meant as text." : "");
  check_choice(node, node.text);
  return node.text;
}

void ParamReader::fail(const Node& node, std::string what, std::string advice) const {
  throw Error(ErrorKind::config, fmt::format("{}, {}: {}", subject_, spec_.name, what),
              node.where.empty() ? where_ : node.where, std::move(advice));
}

void ParamReader::wrong_type(const Node& node, std::string_view wanted, std::string advice) const {
  if (advice.empty()) advice = std::string(spec_.help);
  fail(node, fmt::format("must be {}, but is {}", wanted, description(node)), std::move(advice));
}

void ParamReader::check_number(const Node& node, double value) const {
  if (spec_.range.has_choices()) return check_choice(node, node.text);
  if (!spec_.range.contains(value))
    fail(node, fmt::format("must be {}, but is {}", spec_.range.text(), node.text), std::string(spec_.help));
}

void ParamReader::check_choice(const Node& node, const std::string& value) const {
  const std::vector<std::string_view> choices = spec_.range.choices();
  if (choices.empty() || std::find(choices.begin(), choices.end(), value) != choices.end()) return;
  fail(node, fmt::format("'{}' is not one of {}", value, fmt::join(choices, ", ")),
       advice_for_choice(spec_.name, value, choices, spec_.help));
}

}  // namespace lockstep
