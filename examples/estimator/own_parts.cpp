// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// An estimator whose layer, loss, metric, hook and reader are the program's own. It learns the curve in a
// file of pairs.
//
//   mpirun -n 2 build/own_parts PAIRS RUN_DIR
#include <cstdio>

#include <lockstep/estimator.h>
#include <lockstep/hook.h>
#include <lockstep/training.h>

#include "../custom_layer/prelu.h"
#include "charbonnier.h"
#include "pairs_reader.h"
#include "within.h"

using namespace lockstep;

namespace {

/// Halves the gradients of the slopes in each step, and prints their mean at the end.
class Slopes final : public Hook {
 public:
  Slopes() : Hook("slopes") {}
  bool decides_update() const override { return true; }  // it uses gradients
  Verdict before_update(HookContext& context, const StepResult&) override {
    const auto pair = context.trainer().gradients().of("prelu1/alpha");
    row(pair.gradient.data(), std::ssize(pair.gradient)) *= 0.5F;
    return Verdict::update;
  }
  void end(HookContext& context) override {
    const VariableStore& variables = context.variables();
    if (context.is_chief())
      std::printf("mean slope %.6f\n",
                  static_cast<double>(matrix(variables.tensor(variables.find("prelu1/alpha"))).mean()));
  }
};

constexpr ParamSpec kParams[] = {
    {"units", ParamType::integer, "16", between(1, 1000), "Width of the hidden layer."},
    {"rate", ParamType::real, "0.01", above(0).up_to(1), "Learning rate."}};

EstimatorSpec curve_model(const Features& features, const LabelColumns& labels, Mode, const Params& params) {
  LayerOutput x = layers::dense(features, {.units = params.integer("units")});
  x = add_layer(x, {"prelu"});
  const LayerOutput y = layers::dense(x, {.name = "y", .units = 1});
  return {.loss = loss_term(labels, y, {"charbonnier"}),
          .train_op = {.optimizer = optimizers::adam({.learning_rate = params.real("rate")})},
          .eval_metrics = {{"within", options_map({{"distance", 0.2}})}},
          .training_hooks = {[] { return std::make_unique<Slopes>(); }}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: own_parts PAIRS RUN_DIR\n"), 2;
  layer_table().add(example::kPrelu);
  loss_table().add(example::kCharbonnier);
  metric_table().add(example::kWithin);
  reader_table().add(example::kPairs);
  const auto input = [&] { return Input({"pairs", options_map({{"path", argv[1]}})}); };
  return run_on_ranks({}, true, [&](CommEnvironment& ranks) {
    Estimator estimator(ranks, curve_model,
                        {.model_dir = argv[2], .train = {.batch_size = 32}, .general = {.shards = 4}},
                        make_params({{"units", 24}}, kParams));
    estimator.train(input, {.max_steps = 300});
    const EvaluationOutcome result = estimator.evaluate(input);
    if (ranks.world().rank() == 0)
      std::printf("loss %.9g, within 0.2: %.4f\n", result.loss, result.value("within"));
    return 0;
  });
}
