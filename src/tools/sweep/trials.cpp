// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/sweep/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/philox.h"
#include "tools/sweep/sobol.h"

namespace lockstep {

namespace {

/// The value at `u` in [0, 1), or in [0, 1] for a grid. Six digits, so that a table shows what a trial has.
std::string value_at(const SweepKey& key, double u) {
  double value = 0;
  if (key.is_log)
    value = std::exp(std::log(key.min) + u * (std::log(key.max) - std::log(key.min)));
  else if (key.is_whole)
    value = std::floor(key.min + u * (key.max - key.min + 1));
  else
    value = key.min + u * (key.max - key.min);
  if (key.is_whole) {
    value = std::clamp(std::round(value), key.min, key.max);
    return fmt::format("{:.0f}", value);
  }
  return fmt::format("{:.6g}", std::clamp(value, key.min, key.max));
}

std::string chosen(const SweepKey& key, double u) {
  if (key.values.empty()) return value_at(key, u);
  const auto count = static_cast<double>(key.values.size());
  return key.values[static_cast<std::size_t>(std::min(std::floor(u * count), count - 1))];
}

/// The values of a key of a grid.
std::vector<std::string> grid_values(const SweepKey& key) {
  if (!key.values.empty()) return key.values;
  std::vector<std::string> values;
  for (std::int64_t i = 0; i < key.points; ++i) {
    const double u = static_cast<double>(i) / static_cast<double>(key.points - 1);
    std::string value = key.is_whole && !key.is_log
                            ? fmt::format("{:.0f}", std::round(key.min + u * (key.max - key.min)))
                            : value_at(key, u);
    if (values.empty() || values.back() != value) values.push_back(std::move(value));
  }
  return values;
}

std::vector<std::vector<KeySetting>> grid(const std::vector<SweepKey>& keys) {
  std::vector<std::vector<KeySetting>> trials{{}};
  for (const SweepKey& key : keys) {  // the last key changes fastest
    std::vector<std::vector<KeySetting>> longer;
    for (const std::vector<KeySetting>& trial : trials)
      for (const std::string& value : grid_values(key)) {
        longer.push_back(trial);
        longer.back().push_back({key.key, value});
      }
    trials = std::move(longer);
  }
  return trials;
}

/// In [0, 1). A key's numbers do not depend on the other keys.
double random_number(std::uint64_t seed, const SweepKey& key, std::uint32_t trial) {
  const PhiloxBlock words = philox_words(seed, philox_purpose("sweep/" + key.key), 0, trial, 0);
  return static_cast<double>(((std::uint64_t{words[0]} << 32) | words[1]) >> 11) * 0x1p-53;
}

/// Sobol's point, shifted by the seed (a digital shift keeps the evenness).
double sobol_number(std::uint64_t seed, const SweepKey& key, std::uint32_t trial, std::size_t dimension) {
  const std::uint32_t shift = philox_words(seed, philox_purpose("sobol/" + key.key), 0, 0, 0)[0];
  return (static_cast<double>(sobol_word(trial, dimension) ^ shift) + 0.5) * 0x1p-32;
}

bool is_better(const RungResult& a, const RungResult& b, bool larger) {
  return larger ? a.value > b.value : a.value < b.value;
}

}  // namespace

std::vector<std::vector<KeySetting>> trials_of(const SweepOptions& options) {
  if (options.method == SweepOptions::Method::list) return options.list;
  if (options.method == SweepOptions::Method::grid) return grid(options.keys);
  std::vector<std::vector<KeySetting>> trials(static_cast<std::size_t>(options.trials));
  for (std::size_t trial = 0; trial < trials.size(); ++trial)
    for (std::size_t i = 0; i < options.keys.size(); ++i) {
      const SweepKey& key = options.keys[i];
      const auto number = static_cast<std::uint32_t>(trial);
      const double u = options.method == SweepOptions::Method::sobol
                           ? sobol_number(options.seed, key, number, i)
                           : random_number(options.seed, key, number);
      trials[trial].push_back({key.key, chosen(key, u)});
    }
  return trials;
}

std::vector<std::string> keys_of(const std::vector<std::vector<KeySetting>>& trials) {
  std::vector<std::string> keys;
  for (const std::vector<KeySetting>& trial : trials)
    for (const KeySetting& setting : trial)
      if (std::ranges::find(keys, setting.key) == keys.end()) keys.push_back(setting.key);
  return keys;
}

std::vector<Rung> rungs_of(const SweepOptions& options, std::int64_t trials, std::int64_t last) {
  std::vector<Rung> rungs;
  if (options.first)
    for (std::int64_t end = *options.first; end < last && trials > 1;) {
      rungs.push_back({end, trials});
      trials = std::max<std::int64_t>(1, trials / options.factor);
      if (end > last / options.factor) break;
      end *= options.factor;
    }
  rungs.push_back({std::nullopt, trials});
  return rungs;
}

std::vector<std::size_t> members_of(const std::vector<TrialRecord>& records, const std::vector<Rung>& rungs,
                                    std::size_t rung, bool larger_is_better) {
  std::vector<std::size_t> members;
  for (std::size_t trial = 0; trial < records.size(); ++trial)
    if (rung == 0 || records[trial].results.size() >= rung) members.push_back(trial);
  if (rung == 0) return members;
  std::ranges::stable_sort(members, [&](std::size_t a, std::size_t b) {
    return is_better(records[a].results[rung - 1], records[b].results[rung - 1], larger_is_better);
  });
  const auto most = static_cast<std::size_t>(rungs[rung].trials);
  if (members.size() > most) members.resize(most);
  std::ranges::sort(members);
  return members;
}

std::optional<std::size_t> best_trial(const std::vector<TrialRecord>& records, bool larger_is_better) {
  std::optional<std::size_t> best;
  for (std::size_t trial = 0; trial < records.size(); ++trial) {
    const TrialRecord& record = records[trial];
    if (record.results.empty() || !record.error.empty()) continue;
    const std::vector<RungResult>& first = best ? records[*best].results : record.results;
    if (!best || record.results.size() > first.size() ||
        (record.results.size() == first.size() &&
         is_better(record.results.back(), first.back(), larger_is_better)))
      best = trial;
  }
  return best;
}

}  // namespace lockstep
