// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "api/estimator_config.h"

#include <fmt/format.h>
#include <algorithm>
#include <initializer_list>
#include <sstream>

#include "config/params.h"
#include "config/yaml_node.h"
#include "core/error.h"
#include "model/metric.h"

namespace lockstep {

namespace {

void set_if_given(Node& map, std::string_view key, const Node& value) {
  if (value.kind != Node::Kind::null) set_option(map, key, value);
}

std::vector<Node> nodes_of(const std::vector<Choice>& choices) {
  std::vector<Node> nodes;
  for (const Choice& choice : choices) nodes.push_back(choice.node());
  return nodes;
}

/// `optimizer: {adam: {...}, shard: true}`.
Node optimizer_node(const TrainOp& op) {
  const Node beside = op.beside.node();
  if (is_null(beside)) return op.optimizer.node();
  Node map;
  set_option(map, op.optimizer.name, op.optimizer.options);
  for (const auto& [key, value] : beside.entries) set_option(map, key, value);
  return map;
}

/// The first line in which two texts differ.
std::string first_difference(const std::string& a, const std::string& b) {
  std::istringstream one(a), other(b);
  std::string left, right;
  while (true) {
    const bool has_left = static_cast<bool>(std::getline(one, left));
    const bool has_right = static_cast<bool>(std::getline(other, right));
    if (!has_left && !has_right) return "";
    if (!has_left) left = "nothing";
    if (!has_right) right = "nothing";
    if (left != right) {
      const auto trimmed = [](const std::string& line) { return line.substr(line.find_first_not_of(" -")); };
      return fmt::format("'{}' for training, '{}' for evaluation", trimmed(left), trimmed(right));
    }
  }
}

/// A section with `left_out: null` if one of `chosen` is given and `left_out` is not: what a program asks for
/// is not added to the default.
Node chosen_alone(Node section, std::initializer_list<const char*> chosen, const char* left_out) {
  const auto is_given = [&](const char* option) { return section.find(option) != nullptr; };
  if (!is_given(left_out) && std::ranges::any_of(chosen, is_given)) set_option(section, left_out, nullptr);
  return section;
}

Node model_node(Mode mode, const EstimatorSpec& spec) {
  if (mode == Mode::predict && !spec.predictions.empty()) return predictions_section(spec.predictions);
  Node model = spec.loss.model_section();
  if (mode == Mode::train && !spec.train_op.regularization.empty()) {
    std::vector<Node> lines;
    for (const sections::Regularization& line : spec.train_op.regularization) lines.push_back(line.node());
    set_option(model, "regularization", OptionValue(lines).node());
  }
  return model;
}

}  // namespace

Node estimator_config(const RunConfig& run, Mode mode, const EstimatorSpec& spec,
                      const EstimatorSpec* evaluation, const Input& input, const Input* eval_input) {
  const TrainOp& op = spec.train_op;
  if (mode == Mode::train && op.optimizer.name.empty())
    throw Error(ErrorKind::config, "the model function gives no way to train", "",
                "Set EstimatorSpec::train_op, for example {.optimizer = optimizers::adam({.learning_rate = "
                "0.001})}.");
  if (evaluation != nullptr) {
    const std::string trained = to_yaml(spec.loss.model_section()),
                      evaluated = to_yaml(evaluation->loss.model_section());
    if (trained != evaluated)
      throw Error(
          ErrorKind::config,
          fmt::format("the model function gives two models: {}", first_difference(trained, evaluated)), "",
          "Give the same layers and losses in both modes: dropout, noise and batch norm know the mode.");
  }
  Node root;
  const Node general = run.general.node();
  for (const auto& [key, value] : general.entries) set_option(root, key, value);
  const bool trains = mode == Mode::train;
  set_option(root, "data", Input::data_section(trains ? &input : nullptr, trains ? eval_input : &input));
  set_option(root, "model", model_node(mode, spec));
  if (!op.optimizer.name.empty()) set_option(root, "optimizer", optimizer_node(op));
  if (trains) {
    if (const Node* average = op.average.node()) set_option(root, "average", *average);
    set_if_given(root, "gradients", op.gradients.node());
  }
  set_option(root, "train", run.train.node());
  Node eval = chosen_alone(run.eval.node(), {"every_steps"}, "every_epochs");
  const EstimatorSpec& evaluated = evaluation != nullptr ? *evaluation : spec;
  if (mode != Mode::predict && !evaluated.eval_metrics.empty()) {
    const Node metrics = OptionValue(nodes_of(evaluated.eval_metrics)).node();
    if (mode == Mode::evaluate || evaluation != nullptr)
      set_option(eval, "metrics", metrics);
    else  // a metric that does not exist is an error now, not when the training is done
      static_cast<void>(metrics_from_config(metrics));
  }
  set_if_given(root, "eval", eval);
  set_if_given(
      root, "checkpoint",
      chosen_alone(run.checkpoint.node(), {"every_steps", "every_seconds", "mtbf_hours"}, "every_epochs"));
  set_if_given(root, "summary", run.summary.node());
  set_if_given(root, "comm", run.comm.node());
  set_if_given(root, "precision", run.precision.node());
  set_if_given(root, "gpu", run.gpu.node());
  set_if_given(root, "cluster", run.cluster.node());
  if (run.warm_start) set_option(root, "warm_start", run.warm_start->node());
  if (!run.hooks.empty()) set_option(root, "hooks", OptionValue(nodes_of(run.hooks)).node());
  return root;
}

}  // namespace lockstep
