// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The net of examples/digits.yaml in C++: it has the same layers, the same checkpoints and the same bits.
//
//   mpirun -n 2 build/digits DATA RUN_DIR [STEPS]      DATA: digits.csv.gz; STEPS: fewer than 20 epochs
#include <algorithm>
#include <cstdio>
#include <string>

#include <lockstep/estimator.h>

using namespace lockstep;

namespace {

/// A convolution with a batch norm: a block is a function.
LayerOutput block(const LayerOutput& x, const std::string& number, int filters) {
  const LayerOutput y =
      layers::conv2d(x, {.name = "conv" + number, .filters = filters, .kernel = 3, .bias = false});
  return layers::relu(layers::batch_norm(y, {.name = "bn" + number, .momentum = 0.9}));
}

EstimatorSpec digits_model(const Features& features, const LabelColumns& labels, Mode, const Params&) {
  LayerOutput x = block(features, "1", 32);
  x = layers::dropout(layers::max_pool(x), {.rate = 0.2});
  x = block(block(x, "2", 64), "3", 64);
  const LayerOutput logits = layers::dense(layers::global_avg_pool(x), {.name = "logits", .units = 10});
  return {.loss = losses::softmax_cross_entropy(labels, logits),
          .train_op = {.optimizer = optimizers::adam(
                           {.learning_rate = schedules::exponential_decay(
                                {.initial = 0.004, .decay_steps = 100, .decay_rate = 0.8})})},
          .eval_metrics = {metrics::confusion_matrix()}};
}

/// Rows [first, last) of the file.
InputFunction digits(const std::string& path, std::int64_t first, std::int64_t last) {
  return [=] {
    return readers::csv(
        {.path = path, .label_column = -1, .shape = {8, 8, 1}, .rows = {first, last}, .scale = 0.0625});
  };
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return std::fprintf(stderr, "usage: digits DATA RUN_DIR [STEPS]\n"), 2;
  const std::string data = argv[1];
  return run_on_ranks({}, false, [&](CommEnvironment& ranks) {
    Estimator estimator(ranks, digits_model,
                        {.model_dir = argv[2],
                         .train = {.batch_size = 64, .epochs = 20},
                         .general = {.seed = 1, .shards = 8},
                         .eval = {.every_epochs = 5},
                         .checkpoint = {.every_epochs = 5, .keep = 3},
                         .summary = {.every_steps = 20}});
    TrainOptions options{.eval_input = digits(data, 1500, 1797)};
    if (argc == 4) options.max_steps = std::stol(argv[3]);
    const TrainingOutcome trained = estimator.train(digits(data, 0, 1500), options);
    if (trained.exit_code != 0) return trained.exit_code;
    const EvaluationOutcome result = estimator.evaluate(digits(data, 1500, 1797), {.name = "test"});

    // The likeliest class of the first samples.
    const auto predictions = estimator.predict(digits(data, 1500, 1797));
    predictions->next();
    if (ranks.world().rank() != 0) return 0;
    std::printf("accuracy %.4f at step %d; the first digits are", result.value("accuracy"),
                static_cast<int>(result.global_step));
    const std::span<const float> rows = predictions->values();
    for (int i = 0; i < 8; ++i)
      std::printf(" %d",
                  static_cast<int>(std::max_element(&rows[10 * i], &rows[10 * i] + 10) - &rows[10 * i]));
    std::printf("\n");
    return 0;
  });
}
