// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/scheduled_number.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "config/named_options.h"
#include "config/option.h"
#include "config/param_reader.h"

namespace lockstep {

namespace {

class PlainNumber final : public Schedule {
 public:
  explicit PlainNumber(double value) : value_(value) {}
  double at(double) const override { return value_; }

 private:
  double value_;
};

enum class Scaling { none, linear, square_root };

struct Options {
  TimeUnit unit = TimeUnit::steps;
  Node warmup;
  Scaling scaling = Scaling::none;
  std::optional<std::int64_t> base_batch;
};
constexpr ParamSpec kCommon[] = {
    option<&Options::unit>(kUnitOption, "steps", kTimeUnits,
                           "unit of all times of the schedule; epochs may have a fraction"),
    option<&Options::warmup>("warmup", "null", in_words("linear, exponential, constant or null"),
                             "what precedes the schedule: see the warm-ups"),
    option<&Options::scaling>(
        "scaling", "none", one_of("none|linear|square_root"),
        "multiplies all values by train.batch_size / base_batch, or by its square root"),
    option<&Options::base_batch>("base_batch", "null", between(1, 1e12, "samples").or_null(),
                                 "the global batch for which the values are given; needed with scaling"),
};

/// As one would write it in one line of a configuration.
std::string text_of(const Node& node) {
  if (node.kind == Node::Kind::scalar) return node.text;
  std::vector<std::string> parts;
  for (const Node& item : node.items) parts.push_back(text_of(item));
  if (node.kind == Node::Kind::list) return fmt::format("[{}]", fmt::join(parts, ", "));
  for (const auto& [key, value] : node.entries)
    parts.push_back(is_null(value) ? key : key + ": " + text_of(value));
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

/// A schedule may end at a bound that a plain number may not have: a learning rate of 0.
bool may_have(double value, const OptionRange& range) {
  return std::isfinite(value) &&
         (range.contains(value) ||
          range.contains(std::nextafter(value, std::numeric_limits<double>::infinity())));
}

}  // namespace

std::span<const ParamSpec> common_schedule_table() { return kCommon; }

void set_member(ScheduledNumber& member, const Params& params, const ParamSpec& option) {
  member = ScheduledNumber(params.node(option.name), std::string(option.name), option.range,
                           params.where(option.name), params.subject());
}

ScheduledNumber::ScheduledNumber(const Node& node, std::string option, OptionRange range, std::string where,
                                 std::string subject)
    : node_(node),
      option_(std::move(option)),
      where_(where.empty() ? node.where : std::move(where)),
      subject_(std::move(subject)),
      range_(range) {
  const ParamSpec spec{option_, ParamType::real, kRequired, range,
                       "a number, or a schedule with its options"};
  if (const auto number = plain_number(node, spec, subject_, where_)) {
    formula_ = std::make_unique<PlainNumber>(*number);
    return;
  }
  const NamedOptions named = named_options(node, "schedule");
  const ScheduleEntry& entry = schedule_table().at(named);
  std::vector<ParamSpec> table(entry.table.begin(), entry.table.end());
  table.insert(table.end(), std::begin(kCommon), std::end(kCommon));
  const Params p(named.options, table, "schedule " + named.name);
  ErrorCollector mistakes;
  mistakes.attempt([&] { formula_ = entry.make(p); });
  const auto options = p.as<Options>();
  const std::string_view base_batch = option_name<&Options::base_batch>(p);
  unit_ = options.unit;
  if (!is_null(options.warmup)) mistakes.attempt([&] { warmup_ = make_warmup(options.warmup, unit_); });
  if (options.scaling != Scaling::none) {
    scaling_ = options.scaling == Scaling::linear ? "linear" : "square_root";
    if (options.base_batch)
      base_batch_ = static_cast<double>(*options.base_batch);
    else
      mistakes.add(p.error(option_name<&Options::scaling>(p), "base_batch is missing",
                           "Give the global batch for which the values of the schedule are meant, such as "
                           "base_batch: 256."));
  } else if (options.base_batch) {
    mistakes.add(p.error(base_batch, "it has no effect without scaling",
                         "Add scaling: linear or scaling: square_root, or remove it."));
  }
  mistakes.throw_if_any();
  name_ = named.name;
  if (warmup_ && warmup_->unit == TimeUnit::steps && unit_ == TimeUnit::steps) settle_warmup();
}

std::string ScheduledNumber::written() const { return text_of(node_); }

Error ScheduledNumber::error(const std::string& what_happened, std::string advice) const {
  return Error(ErrorKind::config, fmt::format("{}, {}: {}", subject_, option_, what_happened), where_,
               std::move(advice));
}

void ScheduledNumber::settle_warmup() {
  if (!warmup_) return;
  std::int64_t before = -1, end = 1;  // the warm-up ends in (before, end]
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  while (end < kMost && time_of(warmup_->unit, end, run_) < warmup_->length) {
    before = end;
    end *= 2;
  }
  while (end - before > 1) {
    const std::int64_t middle = before + (end - before) / 2;
    (time_of(warmup_->unit, middle, run_) < warmup_->length ? before : end) = middle;
  }
  warmup_steps_ = end;
  begin_time_ = warmup_->overlap ? 0 : time_of(unit_, end, run_);
}

void ScheduledNumber::begin(const ScheduleRun& run) {
  if (follows()) return;
  run_ = run;
  if (scaling_ != "none") {
    const double ratio = static_cast<double>(run.clock.shape().batch) / base_batch_;
    factor_ = scaling_ == "linear" ? ratio : std::sqrt(ratio);
  }
  settle_warmup();
  formula_->begin(run, option_);
  const double end = time_of(unit_, run.steps, run_) - begin_time_;
  formula_->set_end(end > 0 ? end : std::numeric_limits<double>::max());
  if (name_.empty()) return;
  // The first steps, which include jumps of short runs, and an even choice of the others.
  constexpr std::int64_t kLooks = 1024;
  for (std::int64_t step = 0; step < std::min(run.steps, kLooks); ++step) require_range(step);
  for (std::int64_t i = 1; i <= kLooks && run.steps > kLooks; ++i)
    require_range(
        static_cast<std::int64_t>(static_cast<double>(run.steps - 1) * static_cast<double>(i) / kLooks));
}

void ScheduledNumber::require_range(std::int64_t step) const {
  const double value = at(step);
  if (!may_have(value, range_))
    throw Error(ErrorKind::config,
                fmt::format("{} must be {}, but schedule {} gives {} at step {}", option_,
                            range_.of_numbers().text(), name_, value, step),
                where_, "`lockstep check CONFIG --plot-schedule` draws the schedule.");
}

double ScheduledNumber::at(std::int64_t step) const {
  if (followed_ != nullptr) return followed_factor_ * followed_->at(step);
  LOCKSTEP_CHECK(!warmup_ || warmup_steps_ > 0, "a warm-up in epochs or samples needs begin()");
  const double time = name_.empty() ? 0 : time_of(unit_, step, run_);
  if (step >= warmup_steps_) return factor_ * formula_->at(time - begin_time_);
  const double target = formula_->at(warmup_->overlap ? time : 0);
  return factor_ * target * warmup_->factor(time_of(warmup_->unit, step, run_));
}

}  // namespace lockstep
