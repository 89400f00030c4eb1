// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Server and device functions: which rank is which task, and which parameter server holds a variable. All
// ranks train together; then the chief does something alone, and the others wait for the end of it.
//
//   mpirun -n 3 build/server examples/cluster.yaml RUN_DIR [STEPS]
#include <cstdio>
#include <cstdlib>

#include <lockstep/cluster.h>
#include <lockstep/estimator.h>
#include <lockstep/training.h>

using namespace lockstep;

/// The kernels by their bytes, everything else on the first server.
DeviceFunction kernels_apart(int servers) {
  return [by_bytes = greedy_load_balancing_strategy(servers)](const VariableToPlace& variable) {
    return variable.name.ends_with("/kernel") ? by_bytes(variable) : 0;
  };
}

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: server CONFIG RUN_DIR [STEPS]\n"), 2;
  const long steps = argc > 3 ? std::atol(argv[3]) : 30;
  return run_on_ranks({}, true, [&](CommEnvironment& ranks) {
    const Config config = load_config(argv[1]);
    const int servers = config.cluster.servers;
    Server server(ranks, {}, servers);
    const ClusterRoles& roles = server.roles();
    if (roles.is_chief()) std::printf("%s\n", roles.text().c_str());

    Estimator estimator(ranks, config, argv[2]);
    const TrainingOutcome outcome =
        estimator.train(InputFunction(), {.max_steps = steps, .device_fn = kernels_apart(servers)});

    // What a task does alone takes as long as it takes; the others wait, at most ten minutes.
    if (roles.is_chief())
      std::printf("task %s %d: loss %.9g\n", roles.task_type().c_str(), roles.task_index(), outcome.loss);
    server.join(600);
    return outcome.exit_code;
  });
}
