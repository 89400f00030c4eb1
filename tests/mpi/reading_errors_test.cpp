// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A rank cannot read its samples: all ranks throw its error, nothing of the step is kept, and the step can be
// computed once more.
#include <gmock/gmock.h>

#include <stdexcept>

#include "comm/shared_error.h"
#include "support/mpi_world.h"
#include "support/shared_error_text.h"
#include "support/tiny_run.h"
#include "train/step_observer.h"

namespace lockstep {
namespace {

using testing::HasSubstr;

TinyRunOptions options(int threads) {
  return {
      .layers = "[conv2d: {filters: 4, kernel: 3}, batch_norm: {}, relu: {}, flatten: {}, dense: {units: 3}]",
      .threads = threads};
}

bool is_last() { return test_world().rank() == test_world().size() - 1; }

/// Fails on the last rank while `fails` says so.
Feed failing(const bool& fails) {
  return [&fails](std::int64_t, const Microshard&, float*, Labels&) {
    if (fails && is_last()) throw std::runtime_error("the sensor is broken");
  };
}

TEST(ReadingErrors, AllRanksThrowAndTheStepCanBeComputedOnceMore) {
  for (const int threads : {1, 2}) {
    TinyRun whole(test_world(), options(threads));
    for (int step = 0; step < 4; ++step) whole.trainer().minimize();
    TinyRun run(test_world(), options(threads));
    bool fails = false;
    run.trainer().set_feed(failing(fails));
    for (int step = 0; step < 2; ++step) run.trainer().minimize();
    fails = true;
    EXPECT_THAT(shared_error([&] { run.trainer().minimize(); }), HasSubstr("the sensor is broken"));
    EXPECT_EQ(run.trainer().global_step(), 2);
    fails = false;
    for (int step = 0; step < 2; ++step) run.trainer().minimize();
    EXPECT_EQ(run.variables().hash(), whole.variables().hash()) << threads;
  }
}

TEST(ReadingErrors, AStepThatIsComputedForAnObserverIsReadToo) {
  TinyRun run(test_world(), options(1));
  bool fails = false;
  run.trainer().set_feed(failing(fails));
  run.trainer().compute();
  fails = true;
  StepObserver nothing;
  EXPECT_THAT(shared_error([&] { run.trainer().repeat(nothing); }), HasSubstr("the sensor is broken"));
}

TEST(ReadingErrors, TheExceptionIsInsideOnTheRankThatThrewIt) {
  TinyRun run(test_world(), options(1));
  const bool fails = true;
  run.trainer().set_feed(failing(fails));
  bool inside = false;
  try {
    run.trainer().minimize();
    ADD_FAILURE() << "no error";
  } catch (const SharedError& error) {
    try {
      std::rethrow_if_nested(error);
    } catch (const std::runtime_error& cause) {
      inside = std::string(cause.what()) == "the sensor is broken";
    }
  }
  EXPECT_EQ(inside, is_last());
}

}  // namespace
}  // namespace lockstep
