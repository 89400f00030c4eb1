// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Every number in a configuration has a range with two ends: a huge value is refused where it is read, with
// the option and its range, and never reaches a conversion, an allocation or a loop.
#include <gmock/gmock.h>

#include "config/param_reader.h"
#include "reference/config_reference.h"
#include "run/sections/config_tables.h"
#include "support/error_support.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::message_of;

std::vector<ReferenceSection> all_tables() {
  std::vector<ReferenceSection> all = reference_sections();
  for (const ConfigSection& section : config_sections())
    all.push_back({"Section " + std::string(section.name), "", section.table});
  return all;
}

bool is_integer(const ParamSpec& spec) {
  return spec.type == ParamType::integer || spec.type == ParamType::integers;
}
bool is_real(const ParamSpec& spec) { return spec.type == ParamType::real || spec.type == ParamType::reals; }

std::string message_for(const ParamSpec& spec, const char* value) {
  const std::string subject = "the test", where = "a.yaml:1:1";
  const ParamReader reader(spec, subject, where);
  const Node node = Node::scalar(value, where);
  return message_of([&] { is_integer(spec) ? void(reader.integer(node)) : void(reader.real(node)); });
}

/// Values beyond every range; of a seed every number is a good one.
std::vector<const char*> values_beyond(const ParamSpec& spec) {
  if (is_real(spec)) return {"-1e38", "1e38", "1e300", "-1e999", "1e999"};
  const char* const kLong = "100000000000000000000000000000000000000";
  if (spec.name == "seed") return {"-9223372036854775808", kLong};
  return {"-9223372036854775808", "9223372036854775807", kLong};
}

TEST(OptionRanges, EveryNumberHasTwoLimits) {
  int numbers = 0;
  for (const ReferenceSection& section : all_tables())
    for (const ParamSpec& spec : section.table) {
      if (!is_integer(spec) && !is_real(spec)) continue;
      ++numbers;
      const std::string name(spec.name), range = "must be " + spec.range.text();
      for (const char* value : values_beyond(spec)) {
        EXPECT_THAT(message_for(spec, value), AllOf(HasSubstr(name), HasSubstr(range), HasSubstr(value)))
            << section.title << ", " << name << ": give it a range such as [1, 1e12] or (0, 1e6]";
      }
    }
  EXPECT_GT(numbers, 150);
}

// The limits are for mistakes: what people use is far below them.
TEST(OptionRanges, DefaultsAreWithinTheirRanges) {
  for (const ReferenceSection& section : all_tables())
    for (const ParamSpec& spec : section.table) {
      if ((!is_integer(spec) && !is_real(spec)) || spec.fallback == kRequired) continue;
      EXPECT_NO_THROW(Params(Node{}, {&spec, 1}, section.title)) << section.title << ", " << spec.name;
    }
}

}  // namespace
}  // namespace lockstep
