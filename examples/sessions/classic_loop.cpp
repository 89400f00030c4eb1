// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The classic loop, with the net of examples/digits.yaml: build/classic_loop DIGITS.CSV.GZ RUN_DIR STEPS
#include <lockstep/session.h>
#include <cstdio>

using namespace lockstep;

EstimatorSpec model(const Features& features, const LabelColumns& labels, Mode, const Params&) {
  LayerOutput x = features;
  for (const std::string number : {"1", "2", "3"}) {
    const int filters = number == "1" ? 32 : 64;
    x = layers::conv2d(x, {.name = "conv" + number, .filters = filters, .kernel = 3, .bias = false});
    x = layers::relu(layers::batch_norm(x, {.name = "bn" + number, .momentum = 0.9}));
    if (number == "1") x = layers::dropout(layers::max_pool(x), {.rate = 0.2});
  }
  x = layers::dense(layers::global_avg_pool(x), {.name = "logits", .units = 10});
  const auto rate = schedules::exponential_decay({.initial = 0.004, .decay_steps = 100, .decay_rate = 0.8});
  return {.loss = losses::softmax_cross_entropy(labels, x),
          .train_op = {.optimizer = optimizers::adam({.learning_rate = rate})}};
}

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: classic_loop DIGITS.CSV.GZ RUN_DIR STEPS\n"), 2;
  RunConfig run{.model_dir = argv[2],
                .train = {.batch_size = 64, .steps = std::stol(argv[3])},
                .general = {.seed = 1, .shards = 8}};
  const Input data = readers::csv(
      {.path = argv[1], .label_column = -1, .shape = {8, 8, 1}, .rows = {0, 1500}, .scale = 0.0625});
  return run_on_ranks({}, true, [&](CommEnvironment& ranks) {
    TrainingSession session = monitored_training_session(ranks, model, data, run);
    while (!session.should_stop()) {
      Gradients& gradients = session.compute_gradients();  // which the loop may change, and here looks at
      session.add_histogram("own/logits", gradients.of("logits/kernel").gradient);
      session.apply_gradients(gradients);
    }
    return session.finish().exit_code;
  });
}
