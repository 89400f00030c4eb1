// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// SessionManager: a loop of one's own that continues from a checkpoint, and writes one. Started again with
// more steps, the program goes on where it was, also on another number of ranks.
//
//   mpirun -n 2 build/session_manager examples/digits.yaml RUN_DIR [STEPS]
#include <cstdio>
#include <cstdlib>

#include <lockstep/session.h>

using namespace lockstep;

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: session_manager CONFIG RUN_DIR [STEPS]\n"), 2;
  const long steps = argc > 3 ? std::atol(argv[3]) : 30;
  return run_on_ranks({}, true, [&](CommEnvironment& ranks) {
    SessionSetup setup(ranks, load_config(argv[1]), argv[2]);
    const SessionValues values = setup.values();
    Trainer& trainer = setup.trainer();

    SessionManagerOptions options = setup.session();
    options.init_fn = [&](VariableStore&) {  // in a new run only
      if (setup.is_chief()) std::printf("a new run\n");
    };
    int prepared = 0;
    options.local_init = [&](VariableStore&) { ++prepared; };  // each time, on all ranks
    options.ready = [&] { return prepared > 0 ? "" : "local_init was not called"; };
    SessionManager manager(values, options);

    const SessionManager::Prepared start = manager.prepare();
    if (start.restored_step >= 0 && setup.is_chief())
      std::printf("continues after step %lld\n", static_cast<long long>(start.restored_step));

    while (trainer.global_step() < steps) trainer.minimize();

    // The checkpoint, which `lockstep evaluate RUN_DIR` and `lockstep train` can use, too.
    const CheckpointHeader header =
        run_header(trainer.global_step(), trainer.cursor(), setup.context().shards(), values.seed,
                   resolved_config_text(setup.context().config()));
    const std::vector<CheckpointTensor> tensors = state_tensors(
        values.variables, &values.optimizer, false, trainer.update().average(), values.distributed);
    Saver saver(setup.is_chief(), setup.run_dir(), {.background = false});
    saver.set_distributed(values.distributed);
    agree(
        values.control, [&] { saver.prepare(header, tensors, setup.copy_ways()); }, "preparing");
    saver.finish(values.control, header, tensors, 5);
    if (setup.is_chief()) std::printf("saved step %lld\n", static_cast<long long>(trainer.global_step()));
    return 0;
  });
}
