// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// constant: one value.
#include "optim/schedules/family.h"

namespace lockstep {

namespace {

class Constant final : public Schedule {
 public:
  struct Options {
    double value = 0;
  };
  explicit Constant(const Options& options) : o_(options) {}
  double at(double) const override { return o_.value; }

 private:
  Options o_;
};

constexpr ParamSpec kTable[] = {
    option<&Constant::Options::value>("value", kRequired, above(0).up_to(1e30), "the value")};

}  // namespace

extern const ScheduleEntry kConstantSchedule = {"constant", "one value; a plain number means the same",
                                                kTable, make_formula<Constant>};

}  // namespace lockstep
