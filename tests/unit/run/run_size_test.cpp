// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/run_size.h"

#include <gmock/gmock.h>

#include "run/sections/config.h"
#include "run/setup/default_shards.h"
#include "support/error_support.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

Config config_of(const std::vector<std::string>& overrides) {
  return config_from_text(
      "data: {format: csv, path: d.csv, shape: [4]}\nmodel: {layers: [{dense: {units: 2}}]}\n"
      "optimizer: adam\ntrain: {batch_size: 64, epochs: 2}\n",
      "a.yaml", overrides);
}

TEST(DefaultShards, AreEightOrThePowerOfTwoThatIsNotBelowTheRanks) {
  for (int ranks = 1; ranks <= 8; ++ranks) EXPECT_EQ(default_shards(false, ranks, 1000), 8) << ranks;
  EXPECT_EQ(default_shards(false, 9, 1000), 16);
  EXPECT_EQ(default_shards(false, 16, 1000), 16);
  EXPECT_EQ(default_shards(false, 17, 1000), 32);
  EXPECT_EQ(default_shards(false, 1000, 1 << 20), 1024);
}

TEST(DefaultShards, AreNeverMoreThanTheSamples) {
  for (int samples = 1; samples <= 8; ++samples) EXPECT_EQ(default_shards(false, 3, samples), samples);
  EXPECT_EQ(default_shards(false, 12, 13), 13);
}

TEST(DefaultShards, AreTheRanksOnGpus) {
  for (int ranks = 1; ranks <= 5; ++ranks) EXPECT_EQ(default_shards(true, ranks, 1000), ranks);
  EXPECT_EQ(default_shards(true, 5, 4), 4);
}

TEST(ChooseShards, WithoutTheOptionEachRoundHasTheDefault) {
  EXPECT_EQ(choose_shards(config_of({}), {}, 3), 8);
  EXPECT_EQ(choose_shards(config_of({"train.batch_size=6"}), {}, 3), 6);
  EXPECT_EQ(choose_shards(config_of({"train.accumulate=4"}), {}, 3), 32);
  EXPECT_EQ(choose_shards(config_of({"train.accumulate=16"}), {}, 3), 64);  // four samples in a round
  EXPECT_EQ(choose_shards(config_of({"device=cuda"}), {}, 3), 3);
}

TEST(ChooseShards, ARunKeepsItsNumber) {
  EXPECT_EQ(choose_shards(config_of({}), 5, 3), 5);
  EXPECT_EQ(choose_shards(config_of({}), 0, 3), 8);  // weights of another program
  EXPECT_EQ(choose_shards(config_of({"shards=5"}), 5, 3), 5);
  EXPECT_THAT(message_of([] { choose_shards(config_of({"shards=8"}), 5, 3); }), HasSubstr("began with 5"));
}

TEST(DefaultShardsText, SaysTheNumberAndWhatItLeavesUnused) {
  EXPECT_EQ(default_shards_text(config_of({"shards=8"}), 8, 64), "");
  const std::string fits = default_shards_text(config_of({}), 8, 8);
  EXPECT_THAT(fits, HasSubstr("shards is 8 by default, on any machine"));
  EXPECT_THAT(fits, ::testing::Not(HasSubstr("threads are here")));
  EXPECT_THAT(default_shards_text(config_of({}), 8, 48),
              HasSubstr("48 threads are here, which a new run with shards: 48 uses"));
  EXPECT_THAT(default_shards_text(config_of({}), 8, 100), HasSubstr("shards: 64 uses"));  // of 64 samples
  EXPECT_THAT(default_shards_text(config_of({"train.accumulate=2"}), 16, 48), HasSubstr("shards: 24 uses"));
  EXPECT_THAT(default_shards_text(config_of({"device=cuda"}), 1, 1), HasSubstr("up to 1 GPUs,"));
}

}  // namespace
}  // namespace lockstep
