// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/run_clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace lockstep {

namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 60;

bool is_possible(const EpochShape& shape) {
  return shape.steps > 0 && shape.samples > 0 && shape.batch > 0 && shape.steps < kMost &&
         shape.samples < kMost && shape.batch < kMost;
}

}  // namespace

RunClock::RunClock(const EpochShape& shape) {
  LOCKSTEP_CHECK(is_possible(shape), "an epoch of {} steps", shape.steps);
  periods_.push_back({.shape = shape});
}

std::size_t RunClock::period_at(std::int64_t step) const {
  LOCKSTEP_CHECK(knows_epochs(), "the length of an epoch is not known");
  std::size_t i = periods_.size() - 1;
  while (i > 0 && periods_[i].step > step) --i;
  return i;
}

double RunClock::epochs(std::int64_t step) const { return epochs_in(period_at(step), step); }

/// Until the first end of an epoch, a later period goes evenly from where the one before it was.
double RunClock::epochs_in(std::size_t index, std::int64_t step) const {
  const Period& period = periods_[index];
  const auto end = static_cast<double>(period.end_epochs);
  if (index > 0 && step < period.end_step) {
    const double begin = epochs_in(index - 1, period.step);
    return begin + (end - begin) * static_cast<double>(step - period.step) /
                       static_cast<double>(period.end_step - period.step);
  }
  return end + static_cast<double>(step - period.end_step) / static_cast<double>(period.shape.steps);
}

double RunClock::samples(std::int64_t step) const {
  const Period& period = periods_[period_at(step)];
  const std::int64_t past = step - period.end_step;
  if (past < 0)
    return static_cast<double>(
        std::min(period.samples + (step - period.step) * period.shape.batch, period.end_samples));
  return static_cast<double>(period.end_samples) +
         static_cast<double>(past / period.shape.steps) * static_cast<double>(period.shape.samples) +
         static_cast<double>(past % period.shape.steps) * static_cast<double>(period.shape.batch);
}

std::int64_t RunClock::step_of_epoch(std::int64_t epochs) const {
  LOCKSTEP_CHECK(knows_epochs(), "the length of an epoch is not known");
  for (auto period = periods_.rbegin(); period != periods_.rend(); ++period)
    if (epochs >= period->end_epochs || &*period == &periods_.front())
      return period->end_step + (epochs - period->end_epochs) * period->shape.steps;
  return 0;
}

void RunClock::change(std::int64_t step, std::int64_t epochs, Rest rest, const EpochShape& shape) {
  LOCKSTEP_CHECK(knows_epochs() && step >= changed_at() && is_possible(shape), "a change at step {}", step);
  const auto samples = static_cast<std::int64_t>(this->samples(step));
  if (periods_.back().step == step) periods_.pop_back();
  if (periods_.empty())
    periods_.push_back({.shape = shape});
  else
    periods_.push_back({.step = step,
                        .samples = samples,
                        .end_step = step + rest.steps,
                        .end_epochs = epochs,
                        .end_samples = samples + rest.samples,
                        .shape = shape});
}

std::string RunClock::text() const {
  std::string text;
  for (const Period& p : periods_)
    text += fmt::format("{} {} {} {} {} {} {} {}\n", p.step, p.samples, p.end_step, p.end_epochs,
                        p.end_samples, p.shape.steps, p.shape.samples, p.shape.batch);
  return text;
}

RunClock RunClock::parse(std::string_view text, const std::string& where) {
  RunClock clock;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    Period p;
    for (std::int64_t* const field : {&p.step, &p.samples, &p.end_step, &p.end_epochs, &p.end_samples,
                                      &p.shape.steps, &p.shape.samples, &p.shape.batch})
      fields >> *field;
    const bool follows =
        clock.periods_.empty() ? p == Period{.shape = p.shape} : p.step > clock.periods_.back().step;
    if (!fields || !follows || !is_possible(p.shape) || p.end_step < p.step)
      throw Error(ErrorKind::checkpoint, fmt::format("no period of a run is '{}'", line), where,
                  "The file is damaged: use another checkpoint.");
    clock.periods_.push_back(p);
  }
  return clock;
}

}  // namespace lockstep
