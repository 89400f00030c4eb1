// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace lockstep {

namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  return text.substr(0, text.find_last_not_of(kBlank) + 1);
}

std::optional<double> number(std::string_view text) {
  text = trimmed(text);
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// Removes the first "..." from `text` and returns its contents; empty if there is none.
std::string quoted(std::string_view& text) {
  const std::size_t open = text.find('"');
  const std::size_t close = open == std::string_view::npos ? open : text.find('"', open + 1);
  if (close == std::string_view::npos) return {};
  const std::string found(text.substr(open + 1, close - open - 1));
  text.remove_prefix(close + 1);
  return found;
}

}  // namespace

CheckpointState parse_checkpoint_state(std::string_view text) {
  CheckpointState state;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    line = trimmed(line);
    const std::size_t colon = line.find(':');
    if (line.starts_with('#') || colon == std::string_view::npos) continue;
    const std::string_view key = line.substr(0, colon);
    std::string_view value = line.substr(colon + 1);
    if (key == "model_checkpoint_path") {
      if (state.newest.empty()) state.newest = quoted(value);
    } else if (key == "all_model_checkpoint_paths") {
      if (std::string path = quoted(value); !path.empty()) state.paths.push_back(std::move(path));
    } else if (key == "all_model_checkpoint_timestamps") {
      if (const auto time = number(value)) state.times.push_back(*time);
    } else if (key == "last_preserved_timestamp") {
      state.last_preserved = number(value);
    } else if (key == "preserved_checkpoint_path") {
      if (std::string path = quoted(value); !path.empty()) state.preserved.push_back(std::move(path));
    } else if (key == "checkpoint_metric") {
      const std::string path = quoted(value);
      if (const auto metric = number(value); metric && !path.empty()) state.metrics[path] = *metric;
    } else if (key == "best_checkpoint_path") {
      if (state.best.empty()) state.best = quoted(value);
    }
  }
  if (state.times.size() != state.paths.size()) state.times.clear();
  return state;
}

std::string format_checkpoint_state(const CheckpointState& state) {
  std::string text = fmt::format("model_checkpoint_path: \"{}\"\n", state.newest);
  for (const std::string& path : state.paths)
    text += fmt::format("all_model_checkpoint_paths: \"{}\"\n", path);
  for (double time : state.times) text += fmt::format("all_model_checkpoint_timestamps: {}\n", time);
  if (state.last_preserved) text += fmt::format("last_preserved_timestamp: {}\n", *state.last_preserved);
  for (const std::string& path : state.preserved)
    text += fmt::format("preserved_checkpoint_path: \"{}\"\n", path);
  for (const auto& [path, metric] : state.metrics)
    text += fmt::format("checkpoint_metric: \"{}\" {}\n", path, metric);
  if (!state.best.empty()) text += fmt::format("best_checkpoint_path: \"{}\"\n", state.best);
  return text;
}

}  // namespace lockstep
