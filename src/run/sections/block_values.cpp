// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/sections/block_values.h"

#include <fmt/format.h>

#include <vector>

#include "core/name_list.h"
#include "core/scalar.h"

namespace lockstep {

namespace {

constexpr int kDeepest = 32;  ///< parentheses in parentheses
// Blocks in each other could double a value at each level.
constexpr std::size_t kLongestText = 4096, kMostValues = 100'000;

bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool continues_name(char c) { return begins_name(c) || (c >= '0' && c <= '9'); }

/// Reads the text of one scalar.
class Reader {
 public:
  Reader(const Node& node, const BlockValues& values) : node_(node), text_(node.text), values_(values) {}

  Node read() {
    std::string out;
    while (at_ < text_.size()) {
      if (text_[at_] != '$') {
        out += text_[at_++];
        continue;
      }
      const std::size_t begin = at_++;
      if (peek() == '$') {
        ++at_;
        out += '$';
        continue;
      }
      const Node value = one_value();
      if (begin == 0 && at_ == text_.size()) return value;
      if (value.kind != Node::Kind::scalar) fail("a list or map cannot be part of a text");
      out += value.text;
      if (out.size() > kLongestText)
        fail(fmt::format("with its values it is longer than {} characters", kLongestText));
    }
    Node node = node_;
    node.text = out;
    return node;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    std::vector<std::string> names;
    for (const auto& [name, value] : values_) names.push_back("$" + name);
    throw Error(ErrorKind::config, fmt::format("'{}': {}", text_, what), node_.where,
                fmt::format("Known here: {}. Write $name, or $(expression) with whole numbers, + - * / ^; $$ "
                            "for a dollar sign.",
                            names.empty() ? "nothing" : name_list(names)));
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char next() {
    while (peek() == ' ') ++at_;
    return peek();
  }

  Node one_value() {
    if (peek() != '(') return named();
    ++at_;
    const std::int64_t number = sum();
    expect(')');
    return Node::scalar(std::to_string(number), node_.where);
  }

  const Node& named() {
    const std::size_t begin = at_;
    if (!begins_name(peek())) fail("a name or '(' is missing after $");
    while (continues_name(peek())) ++at_;
    const std::string name = text_.substr(begin, at_ - begin);
    const auto value = values_.find(name);
    if (value == values_.end()) fail(fmt::format("there is no value '{}'", name));
    return value->second;
  }

  void expect(char c) {
    if (next() != c) fail(fmt::format("'{}' is missing in the expression", c));
    ++at_;
  }

  std::int64_t sum() {
    std::int64_t value = product();
    for (char c = next(); c == '+' || c == '-'; c = next()) {
      ++at_;
      const std::int64_t other = product();
      if (c == '+' ? __builtin_add_overflow(value, other, &value)
                   : __builtin_sub_overflow(value, other, &value))
        fail("the result is too large");
    }
    return value;
  }

  std::int64_t product() {
    std::int64_t value = power();
    for (char c = next(); c == '*' || c == '/'; c = next()) {
      ++at_;
      const std::int64_t other = power();
      if (c == '*') {
        if (__builtin_mul_overflow(value, other, &value)) fail("the result is too large");
        continue;
      }
      if (other <= 0 || value % other != 0) fail(fmt::format("{} / {} is no whole number", value, other));
      value /= other;
    }
    return value;
  }

  std::int64_t power() {
    const std::int64_t base = operand();
    if (next() != '^') return base;
    ++at_;
    const std::int64_t exponent = power();
    if (exponent < 0 || exponent > 62) fail("an exponent is from 0 to 62");
    std::int64_t value = 1;
    for (std::int64_t i = 0; i < exponent; ++i)
      if (__builtin_mul_overflow(value, base, &value)) fail("the result is too large");
    return value;
  }

  std::int64_t operand() {
    if (next() == '(') {
      if (++depth_ > kDeepest) fail("too many parentheses");
      ++at_;
      const std::int64_t value = sum();
      expect(')');
      --depth_;
      return value;
    }
    if (begins_name(peek())) {
      const Node& value = named();
      const auto number = value.kind == Node::Kind::scalar ? parse_integer(value.text) : std::nullopt;
      if (!number) fail("a name in an expression must be a whole number");
      return *number;
    }
    const std::size_t begin = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    const auto number = parse_integer(text_.substr(begin, at_ - begin));
    if (!number) fail("a number or a name is missing in the expression");
    return *number;
  }

  const Node& node_;
  const std::string& text_;
  const BlockValues& values_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

/// Counts nodes down from `left`.
void count(const Node& node, std::size_t& left, const std::string& where) {
  if (left-- == 0)
    throw Error(ErrorKind::config, fmt::format("with its values it has more than {} values", kMostValues),
                where, "Do blocks in each other repeat a list?");
  for (const Node& item : node.items) count(item, left, where);
  for (const auto& [key, value] : node.entries) count(value, left, where);
}

Node replaced(const Node& node, const BlockValues& values) {
  if (node.kind == Node::Kind::scalar)
    return node.text.find('$') == std::string::npos ? node : Reader(node, values).read();
  Node copy = node;
  for (Node& item : copy.items) item = replaced(item, values);
  for (auto& [key, value] : copy.entries) value = replaced(value, values);
  return copy;
}

}  // namespace

Node with_values(const Node& node, const BlockValues& values) {
  Node copy = replaced(node, values);
  std::size_t left = kMostValues;
  count(copy, left, node.where);
  return copy;
}

std::int64_t whole_number(const Node& node, std::string_view what, std::int64_t least, std::int64_t most) {
  const auto number = node.kind == Node::Kind::scalar ? parse_integer(node.text) : std::nullopt;
  if (!number || *number < least || *number > most)
    throw Error(ErrorKind::config, fmt::format("{} is not a whole number from {} to {}", what, least, most),
                node.where);
  return *number;
}

}  // namespace lockstep
