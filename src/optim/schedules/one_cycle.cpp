// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// one_cycle: Smith and Topin 2018 (super-convergence), arXiv:1708.07120, with the phases of PyTorch's
// OneCycleLR. In steps, the last step, total_steps - 1, has the last value, as there.
#include <cmath>
#include <numbers>

#include "optim/schedules/family.h"

namespace lockstep {

namespace {

class OneCycle final : public Schedule {
 public:
  enum class Anneal { cosine, linear };
  struct Options {
    double peak = 0;
    std::optional<double> total_steps;
    std::optional<double> initial, last;
    double share_up = 0;
    Anneal anneal = Anneal::cosine;
    bool three_phases = false;
  };
  OneCycle(const Options& options, const Params& p)
      : o_(options),
        initial_(options.initial.value_or(options.peak / 25)),
        last_(options.last.value_or(initial_ / 1e4)),
        length_(options.total_steps),
        unit_(p.string(kUnitOption)),
        where_(p.where(option_name<&Options::share_up>(p))) {
    set_phases();
  }
  void set_end(double time) override {
    length_.set_end(time);
    set_phases();
  }
  double at(double time) const override {
    if (time <= up_) return between(initial_, o_.peak, time / up_);
    if (time <= down_) return between(o_.peak, down_ < end_ ? initial_ : last_, (time - up_) / (down_ - up_));
    return time < end_ ? between(initial_, last_, (time - down_) / (end_ - down_)) : last_;
  }

 private:
  void set_phases() {
    const double step = unit_ == "steps" ? 1 : 0;
    const double total = length_.time(), up = o_.share_up;
    up_ = up * total - step;
    down_ = o_.three_phases ? 2 * up * total - 2 * step : total - step;
    end_ = total - step;
    if (!(up_ > 0) || !(down_ > up_) || (o_.three_phases && !(end_ > down_)))
      throw Error(ErrorKind::config,
                  fmt::format("schedule one_cycle: a cycle {} has no room for a rise of {}{}", length_text(),
                              up, o_.three_phases ? ", and a fall as long" : ""),
                  where_,
                  o_.three_phases
                      ? "With three_phases, share_up is below 0.5 and total_steps is large enough."
                      : "Choose a longer cycle, or another share_up.");
  }
  std::string length_text() const {
    const std::string of = fmt::format("of {} {}", length_.time(), unit_);
    if (length_.is_given()) return of;
    return length_.is_known() ? of + ", until the end of the run," : "until the end of the run";
  }
  double between(double from, double to, double share) const {
    if (o_.anneal == Anneal::linear) return (to - from) * share + from;
    return to + (from - to) / 2 * (std::cos(std::numbers::pi * share) + 1);
  }

  Options o_;
  double initial_, last_;
  DecayLength length_;
  std::string unit_, where_;            ///< for messages
  double up_ = 0, down_ = 0, end_ = 0;  ///< times at which the phases end
};

using Options = OneCycle::Options;
constexpr ParamSpec kTable[] = {
    option<&Options::peak>("peak", kRequired, between(0, 1e30),
                           "value after the rise; may be below initial, for a momentum"),
    length_option<&Options::total_steps>(
        "total_steps", "time of the whole cycle; then the value is last. null: until the end of the run"),
    option<&Options::initial>("initial", "null", between(0, 1e30).or_null(),
                              "value at time 0; null: peak / 25"),
    option<&Options::last>("last", "null", between(0, 1e30).or_null(),
                           "value at the end; null: initial / 10000"),
    option<&Options::share_up>("share_up", "0.3", above(0).below(1),
                               "share of the cycle that the rise takes"),
    option<&Options::anneal>("anneal", "cosine", one_of("cosine|linear"), "shape of rise and fall"),
    option<&Options::three_phases>("three_phases", "false", {},
                                   "fall to initial in the time of the rise, and then to last"),
};

}  // namespace

extern const ScheduleEntry kOneCycleSchedule = {"one_cycle", "one rise to peak and one fall to last",
                                                kTable,      make_formula<OneCycle>,
                                                false,       "total_steps"};

}  // namespace lockstep
