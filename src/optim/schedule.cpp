// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/schedule.h"

#include <array>
#include <cmath>

#include "core/named_options.h"
#include "core/scalar.h"

namespace lockstep {

namespace {

class ConstantRate final : public Schedule {
 public:
  explicit ConstantRate(double rate) : rate_(rate) {}
  double rate(std::int64_t) const override { return rate_; }

 private:
  double rate_;
};

/// initial * decay_rate^(step / decay_steps), the exponent rounded down with staircase.
class ExponentialDecay final : public Schedule {
 public:
  explicit ExponentialDecay(const Params& p)
      : initial_(p.real("initial")),
        decay_rate_(p.real("decay_rate")),
        decay_steps_(p.integer("decay_steps")),
        staircase_(p.boolean("staircase")) {}
  double rate(std::int64_t step) const override {
    const double exponent = static_cast<double>(step) / static_cast<double>(decay_steps_);
    return initial_ * std::pow(decay_rate_, staircase_ ? std::floor(exponent) : exponent);
  }

 private:
  double initial_, decay_rate_;
  std::int64_t decay_steps_;
  bool staircase_;
};

constexpr ParamSpec kConstantTable[] = {{"value", ParamType::real, kRequired, "> 0", "the rate"}};
constexpr ParamSpec kExponentialTable[] = {
    {"initial", ParamType::real, kRequired, "> 0", "rate at step 0"},
    {"decay_steps", ParamType::integer, kRequired, ">= 1",
     "steps in which the rate is multiplied by decay_rate once"},
    {"decay_rate", ParamType::real, kRequired, "> 0", "factor per decay_steps"},
    {"staircase", ParamType::boolean, "false", "", "in jumps instead of smoothly"},
};

constexpr std::array kTable = {
    ScheduleEntry{"constant", "one rate; a plain number means the same", kConstantTable,
                  [](const Params& p) -> std::unique_ptr<Schedule> {
                    return std::make_unique<ConstantRate>(p.real("value"));
                  }},
    ScheduleEntry{
        "exponential_decay", "initial * decay_rate ^ (step / decay_steps)", kExponentialTable,
        [](const Params& p) -> std::unique_ptr<Schedule> { return std::make_unique<ExponentialDecay>(p); }},
};

}  // namespace

std::span<const ScheduleEntry> schedule_table() { return kTable; }

std::unique_ptr<Schedule> make_schedule(const Node& node) {
  if (node.kind == Node::Kind::scalar && !node.quoted) {
    if (const auto number = parse_real(node.text)) {
      LOCKSTEP_REQUIRE(*number > 0, ErrorKind::config, "{}: the learning rate must be above 0, not {}",
                       node.where, node.text);
      return std::make_unique<ConstantRate>(*number);
    }
  }
  const NamedOptions named = named_options(node, "schedule");
  const ScheduleEntry& entry = find_entry(schedule_table(), named, "schedule");
  return entry.make(Params(named.options, entry.table, "schedule " + named.name));
}

}  // namespace lockstep
