// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The section `sweep` of a configuration: which keys `lockstep sweep` tries with which values, and which
// trials it trains to the end.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/params.h"
#include "model/direction.h"

namespace lockstep {

/// One value of one key, as --set takes it.
struct KeySetting {
  std::string key, value;
  bool operator==(const KeySetting&) const = default;
};

/// The values that a key may have: a list, or a range of numbers.
struct SweepKey {
  std::string key;
  std::vector<std::string> values = {};  ///< YAML; empty: a range
  double min = 0, max = 0;
  bool is_log = false;      ///< the logarithm of the value is uniform
  bool is_whole = false;    ///< whole numbers
  std::int64_t points = 0;  ///< of a grid
};

/// The most keys of a sweep with method sobol: as many dimensions as the sequence has (tools/sweep/sobol.h).
inline constexpr std::size_t kMostSobolKeys = 21;

struct SweepOptions {
  enum class Method { grid, random, sobol, list };
  Method method = Method::grid;
  std::vector<SweepKey> keys = {};
  std::vector<std::vector<KeySetting>> list = {};
  std::int64_t trials = 0;  ///< of random and sobol
  std::uint64_t seed = 0;
  std::string metric;
  Direction mode = Direction::none;  ///< as it is given; none: that of the metric
  bool larger_is_better = false;     ///< what follows from both (sweep_plan.h)
  /// Successive halving: where the first rung ends, in steps or epochs; none: all trials train to the end.
  std::optional<std::int64_t> first = {};
  std::int64_t factor = 3;
  std::optional<std::int64_t> groups = {};  ///< none: one per rank
};

std::string_view name_of(SweepOptions::Method method);
/// Options of the section, of an item of `keys` that is a range, and of `halving`.
std::span<const ParamSpec> sweep_table();
std::span<const ParamSpec> sweep_range_table();
std::span<const ParamSpec> sweep_halving_table();
/// `section` is checked against sweep_table(). Throws Error(config).
SweepOptions sweep_options(const Params& section);

}  // namespace lockstep
