// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Supervisor: a loop of one's own with checkpoints, summaries, a service next to it, and a clean end after
// a signal, or `touch RUN_DIR/STOP`. Killed, it continues from the last checkpoint.
//
//   mpirun -n 2 build/supervisor examples/digits.yaml RUN_DIR [STEPS]
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include <lockstep/session.h>

using namespace lockstep;

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: supervisor CONFIG RUN_DIR [STEPS]\n"), 2;
  const long steps = argc > 3 ? std::atol(argv[3]) : 30;
  return run_on_ranks({}, true, [&](CommEnvironment& ranks) {
    SessionSetup setup(ranks, load_config(argv[1]), argv[2]);
    Trainer& trainer = setup.trainer();
    std::atomic<double> loss{0};  // before the supervisor, whose service uses it

    Supervisor supervisor(setup.supervised(), {.session = setup.session(),
                                               .last_step = steps,
                                               .save_model_seconds = 60,
                                               .save_summaries_seconds = 10});
    // A service of this program's, on rank 0; it must not communicate.
    supervisor.loop(5, [&] { std::printf("the loss is %.3f\n", loss.load()); },
                    {.name = "loss watch", .runs_on = RunsOn::chief});

    const int code = supervisor.managed_session([&] {
      if (setup.is_chief() && supervisor.restored_step() >= 0)
        std::printf("continues after step %lld\n", static_cast<long long>(supervisor.restored_step()));
      while (!supervisor.should_stop()) {
        const Gradients& gradients = trainer.compute_gradients();  // which the loop may change
        loss = trainer.apply_gradients(gradients).loss;
      }
    });
    if (setup.is_chief())
      std::printf("step %lld: loss %.9g\n", static_cast<long long>(supervisor.global_step()), loss.load());
    return code;
  });
}
