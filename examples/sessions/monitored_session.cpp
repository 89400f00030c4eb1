// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// MonitoredSession: the loop of `lockstep train`, with hooks. One of them is this program's own.
//
//   mpirun -n 2 build/monitored_session examples/digits.yaml RUN_DIR [STEPS]
#include <cstdio>
#include <cstdlib>

#include <lockstep/session.h>

using namespace lockstep;

/// Prints the loss now and then, and stops when it is low enough.
class LossWatch : public Hook {
 public:
  explicit LossWatch(double enough) : Hook("loss_watch", HookScope::chief_only), enough_(enough) {}
  void after_run(HookContext& context, const StepResult& result) override {
    if (result.step % 10 == 0)
      std::printf("step %lld: loss %.9g\n", static_cast<long long>(result.step), result.loss);
    if (result.loss < enough_) context.request_stop("the loss is low enough");  // all ranks follow
  }

 private:
  double enough_;
};

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: monitored_session CONFIG RUN_DIR [STEPS]\n"), 2;
  const long steps = argc > 3 ? std::atol(argv[3]) : 30;
  return run_on_ranks({}, true, [&](CommEnvironment& ranks) {
    SessionSetup setup(ranks, load_config(argv[1]), argv[2]);
    SessionManager manager(setup.values(), setup.session());
    Saver saver(setup.is_chief(), setup.run_dir(), {});
    RunReports reports(setup.is_chief(), setup.run_dir(), {});

    MonitoredSession session(setup.parts(reports), {.run_dir = setup.run_dir()},
                             [&](HookContext& hooks) { return manager.create(hooks, saver); });
    session.add(std::make_unique<SignalHook>());
    session.add(std::make_unique<SummarySaverHook>(HookTimer(10, {})));
    session.add(std::make_unique<StepCounterHook>(HookTimer(10, {})));
    session.add(std::make_unique<LossWatch>(1e-4));
    session.add(std::make_unique<FinalOpsHook>(
        "report",
        [](HookContext& context) {
          std::printf("ended after step %lld\n", static_cast<long long>(context.global_step()));
        },
        HookScope::chief_only));
    session.add(std::make_unique<StopAtStepHook>(steps));
    session.add(std::make_unique<CheckpointSaverHook>(  // last: what the others change is in the checkpoint
        saver, CheckpointSaverHook::Options{.triggers = {.every_steps = 20},
                                            .config_text = resolved_config_text(setup.context().config()),
                                            .copy_ways = setup.copy_ways()}));
    session.start();
    session.run();  // or: while (!session.should_stop()) session.run_step(); session.finish();
    reports.close();
    return exit_code(session.interruption().kind);
  });
}
