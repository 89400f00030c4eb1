// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests of sessions that a program makes itself: a tiny run, its checkpoints, and the error that all
// ranks have alike.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "api/supervisor.h"
#include "comm/shared_error.h"
#include "core/error.h"
#include "support/estimator_run.h"
#include "support/hook_run.h"

namespace lockstep {

/// A tiny run without a session: 5 shards, seed 4, batch norm.
struct OwnRun {
  OwnRun() : OwnRun(TinyRunOptions{}) {}
  explicit OwnRun(TinyRunOptions options) : tiny(test_world(), with_net(std::move(options))) {}

  static TinyRunOptions with_net(TinyRunOptions options) {
    if (options.layers.empty()) options.layers = kHookNet;
    options.optimizer = "momentum: {learning_rate: 0.05}";
    options.shards = 5;
    return options;
  }
  SessionValues values() {
    return {.control = tiny.control(),
            .trainer = tiny.trainer(),
            .variables = tiny.variables(),
            .optimizer = tiny.optimizer(),
            .seed = 4};
  }
  SupervisedRun supervised() { return {.values = values(), .shards = 5}; }

  TinyRun tiny;
};

/// A run of `steps` steps by a supervisor, which saves it. Returns the hash of its variables. All ranks.
inline std::uint64_t train_and_save(const std::string& run_dir, std::int64_t steps) {
  OwnRun run;
  Supervisor supervisor(run.supervised(),
                        {.session = {.run_dir = run_dir}, .last_step = steps, .save_summaries_seconds = 0});
  supervisor.managed_session([&] {
    while (!supervisor.should_stop()) run.tiny.trainer().minimize();
  });
  return run.tiny.variables().hash();
}

/// The message of the error that all ranks have alike.
template <typename Body>
std::string shared_error(Body body, ErrorKind kind) {
  try {
    body();
  } catch (const SharedError& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

}  // namespace lockstep
