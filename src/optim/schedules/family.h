// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the files of the schedules share.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <type_traits>

#include "config/option.h"
#include "optim/schedule.h"

namespace lockstep {

/// Of a formula whose constructor takes Formula::Options, and the Params for messages if it refuses some.
template <typename Formula>
std::unique_ptr<Schedule> make_formula(const Params& p) {
  using Options = typename Formula::Options;
  if constexpr (std::is_constructible_v<Formula, const Options&, const Params&>)
    return std::make_unique<Formula>(p.as<Options>(), p);
  else
    return std::make_unique<Formula>(p.as<Options>());
}

inline constexpr OptionRange kTimeRange = above(0).up_to(1e15);

/// How long a decay takes: a time that is given, or until the end of the run.
class DecayLength {
 public:
  explicit DecayLength(std::optional<double> given) : given_(given) {}
  void set_end(double time) { end_ = time; }
  /// The largest double before set_end(), unless it is given.
  double time() const { return given_.value_or(end_); }
  bool is_given() const { return given_.has_value(); }
  bool is_known() const { return time() < kUnknown; }

 private:
  static constexpr double kUnknown = std::numeric_limits<double>::max();

  std::optional<double> given_;
  double end_ = kUnknown;
};
/// Its option. The schedule's entry names it as end_option.
template <auto... kPath>
constexpr ParamSpec length_option(std::string_view name, std::string_view help) {
  return option<kPath...>(name, "null", kTimeRange.or_null(), help);
}
template <auto... kPath>
constexpr ParamSpec initial_option() {
  return option<kPath...>("initial", kRequired, above(0).up_to(1e30), "value at time 0");
}

}  // namespace lockstep
