// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A tiny run with a session; a hook that records its calls, and one that calls a function at a given place.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/variable_store.h"
#include "optim/optimizer.h"
#include "session/monitored_session.h"
#include "support/mpi_world.h"
#include "support/tiny_run.h"

namespace lockstep {

inline constexpr const char* kHookNet = "[flatten, dense: {units: 6}, batch_norm, relu, dense: {units: 3}]";

/// A run with a session. A recovery restores the initial values of the variables.
struct TestRun {
  explicit TestRun(int max_recoveries = 0, const char* net = kHookNet, std::int64_t restored_step = -1,
                   Gating gating = Gating::graph)
      : tiny(test_world(),
             {.layers = net, .optimizer = "momentum: {learning_rate: 0.05}", .shards = 5, .gating = gating}),
        reports(test_world().rank() == 0, "", {.events = false, .metrics = false}),
        session({.control = tiny.control(),
                 .trainer = tiny.trainer(),
                 .variables = tiny.variables(),
                 .optimizer = tiny.optimizer(),
                 .reports = reports,
                 .shards = 5,
                 .seed = 4},
                {.run_dir = "", .max_recoveries = max_recoveries, .recovery_wait_seconds = 0},
                [this, restored_step](HookContext& s) {
                  tiny.variables().initialize(4);
                  tiny.optimizer().reset_slots();
                  s.trainer().set_position(0, {});
                  if (on_restore) on_restore(s);
                  return restored_step;
                }) {}
  template <typename H, typename... Args>
  H& add(Args&&... args) {
    auto hook = std::make_unique<H>(std::forward<Args>(args)...);
    H& kept = *hook;
    session.add(std::move(hook));
    return kept;
  }
  void run() {
    session.start();
    session.run();
  }

  TinyRun tiny;
  RunReports reports;
  std::function<void(HookContext&)> on_restore;  ///< called at the end of every restore
  MonitoredSession session;
};

/// Records its calls: "name.method step".
class Recorder : public Hook {
 public:
  Recorder(std::string name, std::vector<std::string>& calls, HookScope scope = HookScope::all_ranks)
      : Hook(std::move(name), scope), calls_(calls) {}
  void begin(HookContext& s) override { note("begin", s.global_step()); }
  void after_create_session(HookContext& s) override { note("create", s.global_step()); }
  void before_run(HookContext& s) override { note("before", s.global_step()); }
  Verdict before_update(HookContext& s, const StepResult& r) override {
    EXPECT_EQ(r.step, s.global_step() + 1);
    note("update", s.global_step());
    return Verdict::update;
  }
  void after_run(HookContext& s, const StepResult& r) override {
    EXPECT_EQ(r.step, s.global_step());
    EXPECT_GT(r.loss, 0);
    note("after", s.global_step());
  }
  void end(HookContext& s) override { note("end", s.global_step()); }

 private:
  void note(const char* method, std::int64_t step) {
    calls_.push_back(fmt::format("{}.{} {}", name(), method, step));
  }
  std::vector<std::string>& calls_;
};

/// Calls `function` in one method, on one rank (-1: all), at one step (-1: all).
class At : public Hook {
 public:
  using Function = std::function<void(HookContext&)>;
  At(std::string method, int rank, std::int64_t step, Function function)
      : Hook("at_" + method),
        method_(std::move(method)),
        rank_(rank),
        step_(step),
        function_(std::move(function)) {}
  void begin(HookContext& s) override { call("begin", s); }
  void after_create_session(HookContext& s) override { call("after_create_session", s); }
  void before_run(HookContext& s) override { call("before_run", s); }
  Verdict before_update(HookContext& s, const StepResult&) override {
    call("before_update", s);
    return Verdict::update;
  }
  void after_run(HookContext& s, const StepResult&) override { call("after_run", s); }
  void end(HookContext& s) override { call("end", s); }

 private:
  void call(const char* method, HookContext& s) {
    if (method_ == method && (rank_ < 0 || rank_ == s.control().rank()) &&
        (step_ < 0 || step_ == s.global_step()))
      function_(s);
  }
  std::string method_;
  int rank_;
  std::int64_t step_;
  Function function_;
};

}  // namespace lockstep
