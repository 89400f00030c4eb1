// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/params.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "core/scalar.h"

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

// A table's default: a scalar or a flat list. Tables are ours, so a broken one is a bug, found by the type
// check.
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
    // "" as a default of text is the empty text, not null.
    node.quoted = text.empty();
  }
  return node;
}

bool is_null(const Node& node) {
  return node.kind == Node::Kind::null ||
         (node.kind == Node::Kind::scalar && !node.quoted && kind_of_scalar(node.text) == ScalarKind::null);
}

bool may_be_null(const ParamSpec& spec) { return spec.fallback == "null" || spec.range.ends_with("or null"); }

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
  return node.quoted ? fmt::format("the text \"{}\"", node.text) : fmt::format("'{}'", node.text);
}

// The number that `text` begins with: "0; one per channel" gives 0.
std::optional<double> leading_number(std::string_view text) {
  text = trimmed(text);
  return parse_real(text.substr(0, text.find_first_not_of("+-.0123456789eE")));
}

// True also if `range` says nothing about numbers: a unit, a remark, "[first, last)".
bool within(double value, std::string_view range) {
  for (const std::string_view sign : {">=", "<=", ">", "<"}) {
    if (!range.starts_with(sign)) continue;
    const auto bound = leading_number(range.substr(sign.size()));
    if (!bound) return true;
    return sign == ">="   ? value >= *bound
           : sign == "<=" ? value <= *bound
           : sign == ">"  ? value > *bound
                          : value < *bound;
  }
  if (!range.starts_with('[') && !range.starts_with('(')) return true;
  const auto comma = range.find(','), close = range.find_first_of("])");
  if (comma == std::string_view::npos || close == std::string_view::npos || comma > close) return true;
  const auto low = leading_number(range.substr(1)), high = leading_number(range.substr(comma + 1));
  if (!low || !high) return true;
  return (range.front() == '[' ? value >= *low : value > *low) &&
         (range[close] == ']' ? value <= *high : value < *high);
}

// The words of "a|b|c"; none if the range is something else.
std::vector<std::string_view> choices_of(std::string_view range) {
  std::vector<std::string_view> choices;
  if (range.ends_with("or null")) range = trimmed(range.substr(0, range.size() - 7));
  if (range.find('|') != std::string_view::npos)
    split(range, '|', [&](std::string_view choice) { choices.push_back(choice); });
  return choices;
}

// Reads the value of one option; `fail(what, advice, where)` throws.
class ValueReader {
 public:
  ValueReader(const ParamSpec& spec, const std::string& subject, const std::string& where_of_map)
      : spec_(spec), subject_(subject), where_(where_of_map) {}

  bool boolean(const Node& node) const {
    if (kind_of(node) != ScalarKind::boolean) wrong_type(node, "true or false");
    return node.text[0] == 't' || node.text[0] == 'T';
  }

  std::int64_t integer(const Node& node) const {
    if (kind_of(node) != ScalarKind::integer) wrong_type(node, "a whole number");
    const auto value = parse_integer(node.text);
    if (!value) fail(node, fmt::format("{} does not fit into 64 bits", node.text));
    check_number(node, static_cast<double>(*value));
    return *value;
  }

  double real(const Node& node) const {
    const ScalarKind kind = kind_of(node);
    if (kind == ScalarKind::integer) return static_cast<double>(integer(node));
    if (kind != ScalarKind::real) wrong_type(node, "a finite number");
    const auto value = parse_real(node.text);
    if (!value) fail(node, fmt::format("{} is out of the range of a double", node.text));
    check_number(node, *value);
    return *value;
  }

  std::string string(const Node& node) const {
    if (kind_of(node) != ScalarKind::text)
      wrong_type(node, "text",
                 node.kind == Node::Kind::scalar ? "If it is meant as text, put it in quotes." : "");
    check_choice(node, node.text);
    return node.text;
  }

  template <typename T, typename Read>
  std::vector<T> list(const Node& node, Read read) const {
    std::vector<T> values;
    if (node.kind != Node::Kind::list) {
      values.push_back((this->*read)(node));
    } else {
      for (const Node& item : node.items) values.push_back((this->*read)(item));
    }
    return values;
  }

  [[noreturn]] void fail(const Node& node, std::string what, std::string advice = {}) const {
    throw Error(ErrorKind::config, fmt::format("{}, {}: {}", subject_, spec_.name, what),
                node.where.empty() ? where_ : node.where, std::move(advice));
  }

 private:
  // Lists and maps count as no scalar at all: `non_finite` fits no type.
  static ScalarKind kind_of(const Node& node) {
    if (node.kind == Node::Kind::null) return ScalarKind::null;
    if (node.kind != Node::Kind::scalar) return ScalarKind::non_finite;
    return node.quoted ? ScalarKind::text : kind_of_scalar(node.text);
  }

  [[noreturn]] void wrong_type(const Node& node, std::string_view wanted, std::string advice = {}) const {
    if (advice.empty()) advice = std::string(spec_.help);
    fail(node, fmt::format("must be {}, but is {}", wanted, description(node)), std::move(advice));
  }

  void check_number(const Node& node, double value) const {
    if (!choices_of(spec_.range).empty()) return check_choice(node, node.text);
    if (!within(value, spec_.range))
      fail(node, fmt::format("must be {}, but is {}", spec_.range, node.text), std::string(spec_.help));
  }

  void check_choice(const Node& node, const std::string& value) const {
    const std::vector<std::string_view> choices = choices_of(spec_.range);
    if (choices.empty() || std::find(choices.begin(), choices.end(), value) != choices.end()) return;
    const std::string close = nearest(value, choices);
    fail(node, fmt::format("'{}' is not one of {}", value, fmt::join(choices, ", ")),
         close.empty() ? std::string(spec_.help) : fmt::format("Did you mean '{}'?", close));
  }

  const ParamSpec& spec_;
  const std::string& subject_;
  const std::string& where_;
};

}  // namespace

const Node* Node::find(std::string_view key) const {
  for (const auto& [name, value] : entries)
    if (name == key) return &value;
  return nullptr;
}

Node Node::scalar(std::string text, std::string where) {
  Node node;
  node.kind = Kind::scalar;
  node.text = std::move(text);
  node.where = std::move(where);
  return node;
}

std::string_view name_of(ParamType type) {
  switch (type) {
    case ParamType::boolean:
      return "boolean";
    case ParamType::integer:
      return "whole number";
    case ParamType::real:
      return "number";
    case ParamType::string:
      return "text";
    case ParamType::integers:
      return "whole numbers";
    case ParamType::reals:
      return "numbers";
    case ParamType::strings:
      return "texts";
    case ParamType::node:
      return "map or value";
  }
  return "unknown";
}

Params::Params(const Node& node, std::span<const ParamSpec> table, std::string subject)
    : where_(node.where), subject_(std::move(subject)) {
  const bool absent = is_null(node);
  LOCKSTEP_CHECK(node.entries.size() == node.entry_where.size() || node.entry_where.empty());
  if (!absent && node.kind != Node::Kind::map)
    throw Error(ErrorKind::config,
                fmt::format("{} must be a map of options, but is {}", subject_, description(node)), where_,
                "Write one 'name: value' per line, indented.");

  std::vector<std::string_view> names;
  for (const ParamSpec& spec : table) names.push_back(spec.name);
  for (std::size_t i = 0; i < node.entries.size(); ++i) {
    const std::string& key = node.entries[i].first;
    if (std::find(names.begin(), names.end(), key) != names.end()) continue;
    const std::string close = nearest(key, names);
    throw Error(
        ErrorKind::config, fmt::format("unknown key '{}' in {}", key, subject_),
        node.entry_where.empty() ? where_ : node.entry_where[i],
        fmt::format("{}Known keys: {}", close.empty() ? "" : fmt::format("Did you mean '{}'? ", close),
                    names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
  }

  for (const ParamSpec& spec : table) {
    const Node* written = absent ? nullptr : node.find(spec.name);
    if (written == nullptr && spec.fallback == kRequired)
      throw Error(ErrorKind::config, fmt::format("{} needs '{}'", subject_, spec.name), where_,
                  std::string(spec.help));
    const Node value = written != nullptr ? *written : parse_fallback(spec.fallback);
    Entry entry{
        {}, written != nullptr && !written->where.empty() ? written->where : where_, written != nullptr};
    const ValueReader reader(spec, subject_, where_);
    if (is_null(value)) {
      if (!may_be_null(spec)) reader.fail(value, "needs a value", std::string(spec.help));
      if (spec.type == ParamType::node) entry.value = Node{};
    } else {
      switch (spec.type) {
        case ParamType::boolean:
          entry.value = reader.boolean(value);
          break;
        case ParamType::integer:
          entry.value = reader.integer(value);
          break;
        case ParamType::real:
          entry.value = reader.real(value);
          break;
        case ParamType::string:
          entry.value = reader.string(value);
          break;
        case ParamType::integers:
          entry.value = reader.list<std::int64_t>(value, &ValueReader::integer);
          break;
        case ParamType::reals:
          entry.value = reader.list<double>(value, &ValueReader::real);
          break;
        case ParamType::strings:
          entry.value = reader.list<std::string>(value, &ValueReader::string);
          break;
        case ParamType::node:
          entry.value = value;
          break;
      }
    }
    entries_.insert_or_assign(std::string(spec.name), std::move(entry));
  }
}

const Params::Entry& Params::entry(std::string_view name) const {
  const auto found = entries_.find(name);
  LOCKSTEP_CHECK(found != entries_.end(), "{} has no option '{}' in its table", subject_, name);
  return found->second;
}

template <typename T>
const T& Params::value(std::string_view name) const {
  const T* found = std::get_if<T>(&entry(name).value);
  LOCKSTEP_CHECK(found != nullptr,
                 "option '{}' of {} is null, or was asked for with another type than its table's", name,
                 subject_);
  return *found;
}

bool Params::boolean(std::string_view name) const { return value<bool>(name); }
std::int64_t Params::integer(std::string_view name) const { return value<std::int64_t>(name); }
double Params::real(std::string_view name) const { return value<double>(name); }
const std::string& Params::string(std::string_view name) const { return value<std::string>(name); }
const std::vector<std::int64_t>& Params::integers(std::string_view name) const {
  return value<std::vector<std::int64_t>>(name);
}
const std::vector<double>& Params::reals(std::string_view name) const {
  return value<std::vector<double>>(name);
}
const std::vector<std::string>& Params::strings(std::string_view name) const {
  return value<std::vector<std::string>>(name);
}
const Node& Params::node(std::string_view name) const { return value<Node>(name); }

bool Params::has(std::string_view name) const {
  const Value& held = entry(name).value;
  const Node* node = std::get_if<Node>(&held);
  return node != nullptr ? !is_null(*node) : !std::holds_alternative<std::monostate>(held);
}

bool Params::given(std::string_view name) const { return entry(name).given; }
const std::string& Params::where(std::string_view name) const { return entry(name).where; }

Error Params::error(std::string_view name, std::string what_happened, std::string advice) const {
  return Error(ErrorKind::config, fmt::format("{}, {}: {}", subject_, name, what_happened), entry(name).where,
               std::move(advice));
}

Node with_defaults(const Node& written, std::span<const ParamSpec> table) {
  Node node = is_null(written) ? Node{} : written;
  node.kind = Node::Kind::map;
  for (const ParamSpec& spec : table) {
    if (spec.fallback == kRequired || node.find(spec.name) != nullptr) continue;
    node.entries.emplace_back(std::string(spec.name), parse_fallback(spec.fallback));
    node.entry_where.push_back(node.where);
  }
  return node;
}

std::string nearest(std::string_view word, std::span<const std::string_view> candidates) {
  // Levenshtein distance; a swap of neighbours counts once (optimal string alignment).
  const auto distance = [](std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
    std::iota(above.begin(), above.end(), 0);
    for (std::size_t i = 1; i <= a.size(); ++i) {
      row[0] = i;
      for (std::size_t j = 1; j <= b.size(); ++j) {
        row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
          row[j] = std::min(row[j], before[j - 2] + 1);
      }
      before.swap(above);
      above.swap(row);
    }
    return above[b.size()];
  };
  std::string best;
  std::size_t least = word.size() / 3 + 1;
  for (const std::string_view candidate : candidates)
    if (const std::size_t d = distance(word, candidate); d < least) {
      least = d;
      best = candidate;
    }
  return best;
}

}  // namespace lockstep
