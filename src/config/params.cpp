// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "config/params.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "config/param_reader.h"
#include "config/synonyms.h"
#include "core/scalar.h"

namespace lockstep {

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

namespace {

std::vector<std::string_view> names_of(std::span<const ParamSpec> table) {
  std::vector<std::string_view> names;
  for (const ParamSpec& spec : table) names.push_back(spec.name);
  return names;
}

/// True if an unknown key is probably this option: that key is the mistake, not that the option is missing.
bool is_misspelt(const Node& node, std::span<const ParamSpec> table, const ParamSpec& option,
                 const std::string& subject) {
  constexpr std::size_t kMostKeys = 100;
  const std::vector<std::string_view> names = names_of(table);
  for (std::size_t i = 0; i < std::min(kMostKeys, node.entries.size()); ++i) {
    const std::string& key = node.entries[i].first;
    if (std::find(names.begin(), names.end(), key) == names.end() &&
        name_for_key(key, subject, names) == option.name)
      return true;
  }
  return false;
}

}  // namespace

Params::Params(const Node& node, std::span<const ParamSpec> table, std::string subject) {
  ErrorCollector mistakes;
  *this = Params(node, table, std::move(subject), mistakes);
  mistakes.throw_if_any();
}

Params::Params(const Node& node, std::span<const ParamSpec> table, std::string subject,
               ErrorCollector& mistakes)
    : where_(node.where), subject_(std::move(subject)) {
  const bool absent = is_null(node);
  LOCKSTEP_CHECK(node.entries.size() == node.entry_where.size() || node.entry_where.empty());
  const bool is_map = absent || node.kind == Node::Kind::map;
  if (!is_map)
    mistakes.add(Error(ErrorKind::config,
                       fmt::format("{} must be a map of options, but is {}", subject_, description(node)),
                       where_,
                       advice_for_value(subject_, node.kind == Node::Kind::scalar ? node.text : "",
                                        "Write one indented 'name: value' per line.")));
  check_keys(node, table, mistakes);
  for (const ParamSpec& spec : table) {
    const Node* written = absent ? nullptr : node.find(spec.name);
    if (written != nullptr && means_default(*written, spec)) written = nullptr;
    Entry entry;
    const bool is_reported = !is_map || (written == nullptr && spec.fallback == kRequired &&
                                         is_misspelt(node, table, spec, subject_));
    const bool is_good = !is_reported && mistakes.attempt([&] { entry = read(written, spec); });
    if (!is_good) entry = {{}, where_, written != nullptr, true};
    if (written == nullptr && !node.overridden.empty()) entry.where = node.overridden;
    entries_.insert_or_assign(std::string(spec.name), std::move(entry));
    if (spec.binding.set != nullptr) bound_.push_back(spec);
  }
}

void Params::set_members(void* object, const void* owner) const {
  bool is_bound = false, is_good = true;
  ErrorCollector mistakes;
  for (const ParamSpec& option : bound_) {
    if (option.binding.owner != owner) continue;
    is_good &= mistakes.attempt([&] { option.binding.set(object, *this, option); });
    is_bound = true;
  }
  LOCKSTEP_CHECK(is_bound, "no option of {} sets a member of this type", subject_);
  mistakes.throw_if_any();
  if (!is_good) throw ReportedMistake(fmt::format("{} has a wrong option", subject_));
}

std::string_view Params::name_of_member(const void* member) const {
  const auto found =
      std::ranges::find(bound_, member, [](const ParamSpec& option) { return option.binding.member; });
  LOCKSTEP_CHECK(found != bound_.end(), "no option of {} sets this member", subject_);
  return found->name;
}

void Params::check_keys(const Node& node, std::span<const ParamSpec> table, ErrorCollector& mistakes) const {
  const std::vector<std::string_view> names = names_of(table);
  for (std::size_t i = 0; i < node.entries.size(); ++i) {
    const std::string& key = node.entries[i].first;
    if (std::find(names.begin(), names.end(), key) != names.end()) continue;
    if (mistakes.is_full()) {
      mistakes.count_only();
      continue;
    }
    mistakes.add(Error(ErrorKind::config, fmt::format("unknown key '{}' in {}", key, subject_),
                       node.entry_where.empty() ? where_ : node.entry_where[i],
                       advice_for_key(key, subject_, names)));
  }
}

Params::Entry Params::read(const Node* written, const ParamSpec& spec) const {
  if (written == nullptr && spec.fallback == kRequired)
    throw Error(ErrorKind::config, fmt::format("{} needs '{}'", subject_, spec.name), where_,
                std::string(spec.help));
  const Node value = written != nullptr ? *written : parse_fallback(spec.fallback);
  Entry entry{
      {}, written != nullptr && !written->where.empty() ? written->where : where_, written != nullptr};
  const ParamReader reader(spec, subject_, where_);
  if (is_null(value)) {
    if (!may_be_null(spec)) reader.fail(value, "needs a value", std::string(spec.help));
    if (spec.type == ParamType::node) entry.value = Node{};
    return entry;
  }
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
      entry.value = reader.list<std::int64_t>(value, &ParamReader::integer);
      break;
    case ParamType::reals:
      entry.value = reader.list<double>(value, &ParamReader::real);
      break;
    case ParamType::strings:
      entry.value = reader.list<std::string>(value, &ParamReader::string);
      break;
    case ParamType::node:
      entry.value = value;
      break;
  }
  return entry;
}

const Params::Entry& Params::entry(std::string_view name) const {
  const auto found = entries_.find(name);
  LOCKSTEP_CHECK(found != entries_.end(), "{} has no option '{}' in its table", subject_, name);
  return found->second;
}

const Params::Entry& Params::good_entry(std::string_view name) const {
  const Entry& found = entry(name);
  if (found.is_wrong) throw ReportedMistake(fmt::format("{}, {} is wrong", subject_, name));
  return found;
}

template <typename T>
const T& Params::value(std::string_view name) const {
  const T* found = std::get_if<T>(&good_entry(name).value);
  LOCKSTEP_CHECK(found != nullptr,
                 "option '{}' of {} is null, or was read as another type than its table declares", name,
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

std::optional<std::int64_t> Params::optional_integer(std::string_view name) const {
  return has(name) ? std::optional(integer(name)) : std::nullopt;
}

std::optional<double> Params::optional_real(std::string_view name) const {
  return has(name) ? std::optional(real(name)) : std::nullopt;
}

bool Params::has(std::string_view name) const {
  const Value& held = good_entry(name).value;
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
    const auto entry = std::ranges::find(node.entries, spec.name, &std::pair<std::string, Node>::first);
    if (entry != node.entries.end() && means_default(entry->second, spec))
      entry->second = parse_fallback(spec.fallback);
    if (spec.fallback == kRequired || entry != node.entries.end()) continue;
    node.entries.emplace_back(std::string(spec.name), parse_fallback(spec.fallback));
    node.entry_where.push_back(node.where);
  }
  return node;
}

std::string nearest(std::string_view word, std::span<const std::string_view> candidates) {
  // Levenshtein distance in which a swap of neighbours counts once (optimal string alignment).
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
