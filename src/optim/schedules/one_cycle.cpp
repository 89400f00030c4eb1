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
  explicit OneCycle(const Params& p)
      : peak_(p.real("peak")),
        initial_(p.optional_real("initial").value_or(peak_ / 25)),
        last_(p.optional_real("last").value_or(initial_ / 1e4)),
        linear_(p.string("anneal") == "linear") {
    const double step = p.string("unit") == "steps" ? 1 : 0;
    const double total = p.real("total_steps"), up = p.real("share_up");
    const bool three_phases = p.boolean("three_phases");
    up_ = up * total - step;
    down_ = three_phases ? 2 * up * total - 2 * step : total - step;
    end_ = total - step;
    if (!(up_ > 0) || !(down_ > up_) || (three_phases && !(end_ > down_)))
      throw p.error("share_up",
                    fmt::format("a cycle of {} {} has no room for a rise of {}{}", total, p.string("unit"),
                                up, three_phases ? ", and a fall as long" : ""),
                    three_phases ? "With three_phases, share_up is below 0.5 and total_steps is large enough."
                                 : "Choose a longer cycle, or another share_up.");
  }
  double at(double time) const override {
    if (time <= up_) return between(initial_, peak_, time / up_);
    if (time <= down_) return between(peak_, down_ < end_ ? initial_ : last_, (time - up_) / (down_ - up_));
    return time < end_ ? between(initial_, last_, (time - down_) / (end_ - down_)) : last_;
  }

 private:
  double between(double from, double to, double share) const {
    if (linear_) return (to - from) * share + from;
    return to + (from - to) / 2 * (std::cos(std::numbers::pi * share) + 1);
  }

  double peak_, initial_, last_;
  bool linear_;
  double up_ = 0, down_ = 0, end_ = 0;  ///< times at which the phases end
};

constexpr ParamSpec kTable[] = {
    {"peak", ParamType::real, kRequired, "[0, 1e30]",
     "value after the rise; may be below initial, for a momentum"},
    {"total_steps", ParamType::real, kRequired, kTimeRange,
     "time of the whole cycle; then the value is last"},
    {"initial", ParamType::real, "null", "[0, 1e30] or null", "value at time 0; null: peak / 25"},
    {"last", ParamType::real, "null", "[0, 1e30] or null", "value at the end; null: initial / 10000"},
    {"share_up", ParamType::real, "0.3", "(0, 1)", "share of the cycle that the rise takes"},
    {"anneal", ParamType::string, "cosine", "cosine|linear", "shape of rise and fall"},
    {"three_phases", ParamType::boolean, "false", "",
     "fall to initial in the time of the rise, and then to last"},
};

}  // namespace

extern const ScheduleEntry kOneCycleSchedule = {"one_cycle", "one rise to peak and one fall to last", kTable,
                                                make_formula<OneCycle>};

}  // namespace lockstep
