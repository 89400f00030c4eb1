// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// constant: one value.
#include "optim/schedules/family.h"

namespace lockstep {

namespace {

class Constant final : public Schedule {
 public:
  explicit Constant(const Params& p) : value_(p.real("value")) {}
  double at(double) const override { return value_; }

 private:
  double value_;
};

constexpr ParamSpec kTable[] = {{"value", ParamType::real, kRequired, "(0, 1e30]", "the value"}};

}  // namespace

extern const ScheduleEntry kConstantSchedule = {"constant", "one value; a plain number means the same",
                                                kTable, make_formula<Constant>};

}  // namespace lockstep
