// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "config/error_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "core/scalar.h"
#include "core/shown_text.h"

namespace lockstep {

namespace {

struct Sources {
  std::mutex mutex;
  std::map<std::string, std::string, std::less<>> texts;
};
Sources& sources() {
  static Sources instance;
  return instance;
}

struct Place {
  std::string_view name;
  std::int64_t line, column;  ///< from 1
};

/// "a.yaml:3:5" in its parts; nothing for other texts.
std::optional<Place> place_of(std::string_view where) {
  const auto number_at_end = [&]() -> std::optional<std::int64_t> {
    const auto colon = where.rfind(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto number = parse_integer(where.substr(colon + 1));
    where = where.substr(0, colon);
    return number;
  };
  const auto column = number_at_end(), line = number_at_end();
  if (!line || !column || *line < 1 || *column < 1) return std::nullopt;
  return Place{where, *line, *column};
}

std::string_view line_of(std::string_view text, std::int64_t number) {
  for (; number > 1; --number) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  return text.ends_with('\r') ? text.substr(0, text.size() - 1) : text;
}

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// The line and a mark below the column, which counts bytes; of a long line the part around it.
std::string excerpt(std::string_view line, const Place& place) {
  constexpr std::size_t kBefore = 60, kMost = 100;
  const auto at = std::min(static_cast<std::size_t>(place.column - 1), line.size());
  std::size_t begin = at > kBefore ? at - kBefore : 0;
  while (begin > 0 && continues_character(line[begin])) --begin;
  std::size_t end = std::min(line.size(), begin + kMost);
  while (end < line.size() && continues_character(line[end])) ++end;
  std::string shown;
  for (std::string_view rest = line.substr(begin, end - begin); !rest.empty();) {
    const std::string_view one = rest.substr(0, std::max<std::size_t>(utf8_bytes(rest), 1));
    shown += shown_text(one) == one ? one : " ";  // a column, so that the mark is below its place
    rest.remove_prefix(one.size());
  }
  const auto characters = std::count_if(line.begin() + static_cast<std::ptrdiff_t>(begin),
                                        line.begin() + static_cast<std::ptrdiff_t>(at),
                                        [](char c) { return !continues_character(c); });
  const std::string before = begin > 0 ? "..." : "", number = std::to_string(place.line);
  return fmt::format("\n  {} | {}{}{}\n  {} | {}^", number, before, shown, end < line.size() ? "..." : "",
                     std::string(number.size(), ' '),
                     std::string(before.size() + static_cast<std::size_t>(characters), ' '));
}

/// The excerpt for a position; empty if it is none in a known source.
std::string excerpt_at(const std::string& where) {
  const auto place = place_of(where);
  if (!place) return {};
  const std::lock_guard lock(sources().mutex);
  const auto source = sources().texts.find(place->name);
  if (source == sources().texts.end()) return {};
  const std::string_view line = line_of(source->second, place->line);
  return line.empty() ? "" : excerpt(line, *place);
}

std::string one_text(const Error& error, const std::string& prefix) {
  const std::string at = error.where().empty() ? "" : error.where() + ": ";
  return fmt::format("error: {}{}{}{}{}{}", prefix, at, error.what_happened(), excerpt_at(error.where()),
                     error.advice().empty() ? "" : "\n  ", error.advice());
}

}  // namespace

void keep_source(const std::string& name, std::string_view text) {
  const std::lock_guard lock(sources().mutex);
  sources().texts.insert_or_assign(shown_text(name), std::string(text));
}

std::string error_text(const Error& error, const std::string& prefix) {
  const auto* group = dynamic_cast<const ErrorGroup*>(&error);
  if (group == nullptr) return one_text(error, prefix);
  std::string text;
  for (const Error& each : group->errors()) text += one_text(each, prefix) + '\n';
  const std::size_t more = group->total() - group->errors().size();
  return text + (more > 0 ? fmt::format("{} mistakes, {} of them not shown", group->total(), more)
                          : fmt::format("{} mistakes", group->total()));
}

void throw_in_order(const ErrorCollector& mistakes, const std::string& name) {
  std::vector<Error> errors = mistakes.errors();
  const auto order = [&](const Error& error) -> std::tuple<int, std::int64_t, std::int64_t> {
    const auto place = place_of(error.where());
    if (place && place->name == shown_text(name)) return {0, place->line, place->column};
    return {error.where().empty() ? 2 : 1, 0, 0};
  };
  std::stable_sort(errors.begin(), errors.end(),
                   [&](const Error& a, const Error& b) { return order(a) < order(b); });
  if (mistakes.total() > 1) throw ErrorGroup(errors, mistakes.total());
  if (!errors.empty()) throw Error(errors.front());
}

}  // namespace lockstep
