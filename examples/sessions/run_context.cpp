// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// RunContext: the ranks, device, data, model and threads of a configuration. This program trains with it and
// evaluates, and writes nothing to disk.
//
//   mpirun -n 2 build/run_context examples/digits.yaml [STEPS]
#include <cstdio>
#include <cstdlib>

#include <lockstep/training.h>

using namespace lockstep;

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: run_context CONFIG [STEPS]\n"), 2;
  const long steps = argc > 2 ? std::atol(argv[2]) : 30;
  return run_on_ranks({}, true, [&](CommEnvironment& ranks) {
    RunContext context(ranks, load_config(argv[1]), {}, {.train = true, .eval = true, .updates = true});
    const std::unique_ptr<TrainerSetup> setup = make_trainer(context);
    if (context.is_chief())
      std::printf("%lld samples, %d microshards, %lld values to train\n",
                  static_cast<long long>(context.train_data().size()), context.shards(),
                  static_cast<long long>(context.model().variables->trainable_elements()));

    StepResult step;
    while (setup->trainer->global_step() < steps) step = setup->trainer->minimize();

    Evaluation evaluation(context.executor_context(), context.control(), context.eval_set(),
                          context.config().evaluation_batch_size());
    context.workers().grow_scratch(evaluation.scratch_bytes());
    const EvaluationResult result = evaluation.run();  // each sample once, on any number of ranks
    if (context.is_chief())
      std::printf("step %lld: loss %.9g; %lld held-out samples: loss %.9g, accuracy %.4f\n",
                  static_cast<long long>(step.step), step.loss, static_cast<long long>(result.samples),
                  result.loss, result.accuracy);
    return 0;
  });
}
