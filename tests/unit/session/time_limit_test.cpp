// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// When a job ends, by the configuration and by Slurm; the rest is shown end to end (tests/e2e/jobs_test.py).
#include "session/hooks/time_limit_hook.h"

#include <gmock/gmock.h>

#include "config/yaml_node.h"
#include "session/training_options.h"
#include "support/error_support.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

std::optional<JobEnd> end_at(const std::string& limit, const char* slurm) {
  const Params train(parse_yaml("{batch_size: 1, epochs: 1, time_limit: " + limit + "}", "test.yaml"),
                     training_table(), "section train");
  return job_end(training_options(train).time_limit_seconds, 1000, [&](const char* name) -> const char* {
    return std::string_view(name) == "SLURM_JOB_END_TIME" ? slurm : nullptr;
  });
}

TEST(JobEnd, TheEarlierOfBothCounts) {
  EXPECT_FALSE(end_at("null", nullptr));
  EXPECT_EQ(end_at("90s", nullptr)->time, 1090);
  EXPECT_EQ(end_at("null", "1050")->time, 1050);
  EXPECT_STREQ(end_at("90s", "1050")->source, "SLURM_JOB_END_TIME");
  EXPECT_STREQ(end_at("90s", "1100")->source, "train.time_limit");
}

TEST(JobEnd, InvalidLimitIsAnErrorInvalidSlurmTimeIsNot) {
  EXPECT_THAT(testing::message_of([] { end_at("soon", nullptr); }), HasSubstr("'soon' is no duration"));
  EXPECT_THAT(testing::message_of([] { end_at("0s", nullptr); }), HasSubstr("'0s' is no duration"));
  EXPECT_EQ(end_at("90s", "NONE")->time, 1090);
}

TEST(JobEnd, OneThatWasBeforeTheStartIsOfAnotherJob) {
  EXPECT_FALSE(end_at("null", "999"));
  EXPECT_STREQ(end_at("90s", "999")->source, "train.time_limit");
}

}  // namespace
}  // namespace lockstep
