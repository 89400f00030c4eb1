// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/one_value_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/yaml_node.h"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kDense = "[dense: {units: 3}, batch_norm: {name: bn}, relu, dense: {units: 2}]";

std::string warning(const char* layers, const StepPlanSpec& spec, const Shape& features = Shape{4}) {
  return one_value_statistics(graph_from_config(parse_yaml(layers, "test"), features), StepPlan(spec));
}

TEST(OneValueStatistics, RemainderOfOneSampleIsNamed) {
  EXPECT_THAT(warning(kDense, {.num_samples = 33, .batch_size = 8, .shards = 4}),
              AllOf(HasSubstr("bn: "), HasSubstr("1 of 33 samples"), HasSubstr("moving statistics"),
                    HasSubstr("train.last_batch")));
  EXPECT_THAT(warning(kDense, {.num_samples = 34, .batch_size = 8, .shards = 4}), IsEmpty());
  EXPECT_THAT(
      warning(kDense, {.num_samples = 33, .batch_size = 8, .shards = 4, .last_batch = LastBatch::drop}),
      IsEmpty());
}

TEST(OneValueStatistics, PositionsCount) {
  constexpr const char* kImage = "[conv2d: {filters: 2, kernel: 3}, batch_norm, flatten, dense: {units: 2}]";
  EXPECT_THAT(warning(kImage, {.num_samples = 33, .batch_size = 8, .shards = 4}, Shape{4, 4, 1}), IsEmpty());
}

TEST(OneValueStatistics, GroupsAreLookedAtEach) {
  constexpr const char* kEach = "[dense: {units: 3}, batch_norm: {name: each, group: 1}]";
  EXPECT_THAT(warning(kEach, {.num_samples = 32, .batch_size = 4, .shards = 4}),
              AllOf(HasSubstr("each: "), HasSubstr("batches of 4"), HasSubstr("train.batch_size")));
  EXPECT_THAT(warning(kEach, {.num_samples = 34, .batch_size = 8, .shards = 4}),
              AllOf(HasSubstr("2 of 34 samples"), Not(HasSubstr("moving"))));
  EXPECT_THAT(warning(kEach, {.num_samples = 32, .batch_size = 8, .shards = 4}), IsEmpty());
}

}  // namespace
}  // namespace lockstep
