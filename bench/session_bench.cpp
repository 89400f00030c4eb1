// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The overhead per step of the session and its hooks when none of them has anything to do, and the cost of a
// hash of the variables, as the drift check computes it.
//
//   [mpirun -n 2] session_bench [--steps N]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "comm/environment.h"
#include "core/hash.h"
#include "session/hooks/checkpoint_saver_hook.h"
#include "session/hooks/drift_check_hook.h"
#include "session/hooks/nan_guard_hook.h"
#include "session/hooks/progress_hook.h"
#include "session/hooks/step_clock_hook.h"
#include "session/hooks/stop_hooks.h"
#include "session/hooks/straggler_hook.h"
#include "session/hooks/summary_hooks.h"
#include "session/monitored_session.h"
#include "support/tiny_run.h"

namespace lockstep {
namespace {

constexpr std::int64_t kNever = std::int64_t{1} << 40;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int run(CommEnvironment& environment, int steps) {
  Communicator& world = environment.world();
  TinyRun tiny(world, {.layers = "[flatten, dense: {units: 3}]",
                       .optimizer = "gradient_descent: {learning_rate: 0.001}"});
  RunReports reports(world.rank() == 0, "/tmp", {.events = false, .metrics = false});
  MonitoredSession session({.control = tiny.control(),
                            .trainer = tiny.trainer(),
                            .variables = tiny.variables(),
                            .optimizer = tiny.optimizer(),
                            .reports = reports,
                            .shards = 4,
                            .seed = 4},
                           {.run_dir = "/tmp"}, [](HookContext&) { return std::int64_t{-1}; });
  Saver saver(world.rank() == 0, "/tmp", {.background = false});
  session.add(std::make_unique<NanGuardHook>(GuardAction::error));
  session.add(std::make_unique<DriftCheckHook>(kNever));
  if (world.size() > 1) session.add(std::make_unique<StragglerHook>(world.size(), StragglerOptions{}));
  session.add(std::make_unique<SummarySaverHook>(HookTimer(kNever, 0)));
  session.add(std::make_unique<StepCounterHook>(HookTimer(kNever, 0)));
  session.add(std::make_unique<StopAtStepHook>(kNever));
  session.add(std::make_unique<CheckpointSaverHook>(
      saver, CheckpointSaverHook::Options{.triggers = {.every_seconds = 1e6}}));
  session.add(std::make_unique<ProgressHook>(kNever, 0));
  session.add(std::make_unique<StepClockHook>([&](double seconds) { environment.step_took(seconds); }));
  session.start();

  // Alternating, so that other load affects both.
  std::vector<double> plain, hooked;
  for (int round = 0; round < 51; ++round) {
    Timer timer;
    for (int i = 0; i < steps; ++i) tiny.trainer().minimize();
    plain.push_back(timer.seconds() / steps);
    timer.restart();
    for (int i = 0; i < steps; ++i) session.run_step();
    hooked.push_back(timer.seconds() / steps);
  }
  std::vector<double> hash;
  const std::size_t bytes = std::size_t{64} << 20;
  Buffer values(cpu_device(), bytes);
  std::uint64_t sum = 0;
  for (int round = 0; round < 11; ++round) {
    const Timer timer;
    sum += hash64(values.data(), bytes);
    hash.push_back(timer.seconds());
  }
  if (world.rank() == 0)
    fmt::print(
        "{} rank(s): a step {:.2f} us, in a session with the default hooks {:.2f} us: the loop's own {:.2f} "
        "us\n"
        "hash of variables: {:.1f} GB/s (sum {})\n",
        world.size(), 1e6 * median(plain), 1e6 * median(hooked), 1e6 * (median(hooked) - median(plain)),
        1e-9 * static_cast<double>(bytes) / median(hash), sum % 7);
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  const int steps =
      argc > 2 && std::string_view(argv[1]) == "--steps" ? std::max(1, std::atoi(argv[2])) : 2000;
  lockstep::CommEnvironment environment({.timeout_seconds = 60});
  const int code = lockstep::run(environment, steps);
  environment.finalize();
  return code;
}
