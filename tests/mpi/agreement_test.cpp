// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Errors on a single rank, ranks with different inputs, and variables that diverge.
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>

#include "comm/agree.h"
#include "comm/startup_check.h"
#include "core/cpu.h"
#include "core/error.h"
#include "support/mpi_world.h"

namespace lockstep {
namespace {

template <typename Body>
std::optional<Error> error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

// Compares the text with rank 0's.
void expect_same_everywhere(const std::string& text) {
  Communicator& world = test_world();
  std::uint64_t length = text.size();
  world.broadcast(&length, sizeof length, 0, "length");
  std::string first = text;
  first.resize(length);
  world.broadcast(first.data(), length, 0, "text");
  EXPECT_EQ(text, first);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Agree, SuccessReturnsNormally) {
  int calls = 0;
  agree(
      test_world(), [&] { ++calls; }, "nothing");
  EXPECT_EQ(calls, 1);
}

TEST(Agree, ErrorOfOneRankReachesAll) {
  Communicator& world = test_world();
  for (int bad = 0; bad < world.size(); ++bad) {
    const auto error = error_of([&] {
      agree(
          world,
          [&] {
            if (world.rank() == bad)
              throw Error(ErrorKind::data, "no such record", "a.h5, record 7", "Look at a.h5.");
          },
          "open");
    });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::data);
    EXPECT_EQ(error->where(), "a.h5, record 7");
    EXPECT_EQ(error->advice(), "Look at a.h5.");
    EXPECT_TRUE(contains(error->what_happened(), "no such record")) << error->what();
    EXPECT_EQ(contains(error->what_happened(), fmt::format("rank {}, host {}", bad, host_name())),
              world.size() > 1);
    expect_same_everywhere(error->what());
  }
}

TEST(Agree, LowestFailingRankWins) {
  Communicator& world = test_world();
  const int first = world.size() / 2;
  const auto error = error_of([&] {
    agree(
        world,
        [&] {
          if (world.rank() >= first)
            throw Error(ErrorKind::checkpoint, fmt::format("bad on {}", world.rank()));
        },
        "open");
  });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->kind(), ErrorKind::checkpoint);
  EXPECT_TRUE(contains(error->what_happened(), fmt::format("bad on {}", first))) << error->what();
  expect_same_everywhere(error->what());
}

TEST(Agree, SameErrorOnAllRanksNamesNoRank) {
  const auto error = error_of([&] {
    agree(
        test_world(), [&] { throw Error(ErrorKind::config, "no file", "run.yaml:3:1"); }, "open");
  });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->what_happened(), "no file");
  EXPECT_EQ(error->where(), "run.yaml:3:1");
}

TEST(Agree, OtherExceptionsAreBugs) {
  Communicator& world = test_world();
  const auto error = error_of([&] {
    agree(
        world,
        [&] {
          if (world.rank() == world.size() - 1) throw std::runtime_error("from a library");
        },
        "open");
  });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->kind(), ErrorKind::bug);
  EXPECT_TRUE(contains(error->what_happened(), "from a library"));
}

TEST(StartupCheck, AcceptsEqualFields) {
  const std::vector<NamedText> fields{{"build", "1.0"}, {"config", std::string(100000, 'x')}, {"empty", ""}};
  EXPECT_NO_THROW(require_same(test_world(), fields));
}

TEST(StartupCheck, NamesFieldRanksHostsAndValues) {
  Communicator& world = test_world();
  if (world.size() == 1) GTEST_SKIP() << "needs two ranks";
  for (int bad = 0; bad < world.size(); ++bad) {
    std::string config = std::string(5000, 'a') + "learning_rate: 0.1" + std::string(5000, 'b');
    if (world.rank() == bad) config.replace(config.find("0.1"), 3, "0.5");
    const std::vector<NamedText> fields{{"build", "1.0"}, {"config", config}, {"data", "abc"}};
    const auto error = error_of([&] { require_same(world, fields); });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::config);
    const std::string text = error->what();
    EXPECT_TRUE(contains(text, "'config' differs")) << text;
    EXPECT_TRUE(contains(text, fmt::format("rank {} on host {}", bad, host_name()))) << text;
    EXPECT_TRUE(contains(text, "learning_rate: 0.1")) << text;
    EXPECT_TRUE(contains(text, "learning_rate: 0.5")) << text;
    EXPECT_LT(text.size(), 1500U);
    expect_same_everywhere(text);
  }
}

TEST(StartupCheck, GroupsRanksWithTheSameValue) {
  Communicator& world = test_world();
  if (world.size() < 4) GTEST_SKIP() << "needs four ranks";
  const std::vector<NamedText> fields{{"build", world.rank() == 1 || world.rank() == 2 ? "new" : "old"}};
  const auto error = error_of([&] { require_same(world, fields); });
  ASSERT_TRUE(error.has_value());
  EXPECT_TRUE(contains(error->what(), fmt::format("ranks 1-2 on host {}: build: new", host_name())))
      << error->what();
}

TEST(StartupCheck, RejectsAnotherListOfFields) {
  Communicator& world = test_world();
  if (world.size() == 1) GTEST_SKIP() << "needs two ranks";
  std::vector<NamedText> fields{{"build", "1.0"}};
  if (world.rank() == world.size() - 1) fields.emplace_back("isa", "avx2");
  const auto error = error_of([&] { require_same(world, fields); });
  ASSERT_TRUE(error.has_value());
  EXPECT_TRUE(contains(error->what(), "isa")) << error->what();
  expect_same_everywhere(error->what());
}

TEST(StartupCheck, DetectsDivergedVariables) {
  Communicator& world = test_world();
  EXPECT_NO_THROW(require_same_bits(world, 42, "variables"));
  if (world.size() == 1) GTEST_SKIP() << "needs two ranks";
  for (int bad = 0; bad < world.size(); ++bad) {
    const auto error =
        error_of([&] { require_same_bits(world, world.rank() == bad ? 1 : 42, "variables after step 7"); });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::numeric);
    EXPECT_TRUE(contains(error->what(), "variables after step 7")) << error->what();
    if (world.size() > 2)
      EXPECT_TRUE(contains(error->what(), fmt::format("rank {} on host {} has", bad, host_name())))
          << error->what();
    else
      EXPECT_TRUE(contains(error->what(), "no value has a majority")) << error->what();
    expect_same_everywhere(error->what());
  }
}

TEST(StartupCheck, RankListsUseRanges) {
  EXPECT_EQ(rank_list(std::vector<int>{0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8");
  EXPECT_EQ(rank_list(std::vector<int>{}), "");
}

}  // namespace
}  // namespace lockstep
