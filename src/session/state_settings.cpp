// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/state_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "io/json.h"

namespace lockstep {

namespace {

const std::string* value_of(const StateSettings& settings, const std::string& name) {
  const auto found = std::ranges::find(settings, name, &StateSettings::value_type::first);
  return found != settings.end() ? &found->second : nullptr;
}

}  // namespace

std::string differences(const StateSettings& before, const StateSettings& now) {
  std::vector<std::string> all;
  for (const auto& [name, value] : now) {
    const std::string* const old = value_of(before, name);
    if (old == nullptr)
      all.push_back(fmt::format("{} is {} now", name, value));
    else if (*old != value)
      all.push_back(fmt::format("{} was {} and is {}", name, *old, value));
  }
  for (const auto& [name, value] : before)
    if (value_of(now, name) == nullptr) all.push_back(fmt::format("{} was {}", name, value));
  return fmt::format("{}", fmt::join(all, ", "));
}

void StatePieces::add(StatePiece piece) {
  LOCKSTEP_CHECK(find(piece.name) == nullptr, "two pieces of state are called {}", piece.name);
  pieces_.push_back(std::move(piece));
}

const StatePiece* StatePieces::find(std::string_view name) const {
  const auto found = std::ranges::find(pieces_, name, &StatePiece::name);
  return found != pieces_.end() ? &*found : nullptr;
}

std::string StatePieces::text() const {
  Json all = Json::object();
  for (const StatePiece& piece : pieces_) {
    Json settings = Json::object(), numbers = Json::object();
    for (const auto& [name, value] : piece.settings) settings[name] = value;
    for (const auto& [name, value] : piece.numbers) numbers[name] = value;
    Json entry = Json::object();
    entry["settings"] = std::move(settings);
    if (!piece.numbers.empty()) entry["numbers"] = std::move(numbers);
    all[piece.name] = std::move(entry);
  }
  return all.dump(1);
}

StatePieces StatePieces::parse(std::string_view text, const std::string& where) {
  StatePieces pieces;
  if (text.empty()) return pieces;
  try {
    const Json all = Json::parse(text);
    for (const auto& [name, entry] : all.items()) {
      StatePiece piece{.name = name};
      for (const auto& [setting, value] : entry["settings"].items())
        piece.settings.emplace_back(setting, value.string());
      for (const auto& [number, value] : entry["numbers"].items())
        piece.numbers[number] = value.template get<std::int64_t>();
      pieces.add(std::move(piece));
    }
  } catch (const JsonError& error) {
    throw Error(ErrorKind::checkpoint, fmt::format("the settings of its state: {}", error.what()), where,
                "The file is damaged: use another checkpoint.");
  }
  return pieces;
}

bool StateReport::keeps(const StatePiece& now) {
  PieceOutcome outcome{.name = now.name};
  if (const StatePiece* const old = before_.find(now.name); old != nullptr) {
    outcome.why = differences(old->settings, now.settings);
    outcome.changed = !outcome.why.empty();
  } else if (!before_.empty()) {
    outcome.why = "the checkpoint has none";
  }
  outcomes_.push_back(outcome);
  return outcome.why.empty();
}

std::vector<std::string> lines_of(const std::vector<PieceOutcome>& outcomes) {
  if (outcomes.empty()) return {};
  std::vector<std::string> lines, names;
  for (const PieceOutcome& outcome : outcomes) {
    constexpr std::string_view kOfHooks = "state/hooks/";
    const std::string name =
        outcome.name.substr(outcome.name.starts_with(kOfHooks) ? kOfHooks.size() : std::size_t{0});
    names.push_back(name);
    lines.push_back(outcome.why.empty() ? fmt::format("state of {}: kept", name)
                                        : fmt::format("state of {}: begun anew: {}", name, outcome.why));
  }
  if (std::ranges::any_of(outcomes, [](const PieceOutcome& outcome) { return !outcome.why.empty(); }))
    return lines;
  return {fmt::format("state of {}: kept", fmt::join(names, ", "))};
}

}  // namespace lockstep
