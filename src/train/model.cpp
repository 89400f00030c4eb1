// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/option.h"
#include "core/error.h"
#include "core/sizes.h"
#include "data/sample_mixing.h"
#include "model/heads_options.h"
#include "train/model_graph.h"
#include "train/sparse_gradients.h"

namespace lockstep {

namespace {

// Options that are read each by itself, so that a mistake in one does not hide those of the others.
struct Regularized {
  Node lines;
};
struct Frozen {
  std::vector<std::string> patterns;
};
struct Reported {
  std::vector<std::string> metrics;
};
constexpr ParamSpec kModelTable[] = {
    option<&ModelOptions::layers>("layers", kRequired, {}, "The layers, in order; see the list of layers."),
    {"blocks", ParamType::node, "null", in_words("map or null"),
     "Named groups of layers with parameters, which the list of layers uses like layers."},
    kHeadsOptions[0],
    kHeadsOptions[1],
    kHeadsOptions[2],
    option<&Regularized::lines>("regularization", "null", in_words("list or null"),
                                "L1 and L2 regularization of chosen variables, a part of the training loss; "
                                "see the options of a line."),
    option<&Frozen::patterns>("frozen", "[]", {},
                              "Patterns of names of layers and variables that keep their values, as in "
                              "[conv*, \"re:block[12]/.*\"]; see trainable, an option of every layer."),
    option<&Reported::metrics>("metrics", "[accuracy]", {}, "What is reported beside the loss: accuracy.",
                               Change::free),
};

bool reports_accuracy(const Params& model) {
  const auto reported = model.as<Reported>();
  for (const std::string& metric : reported.metrics)
    if (metric != "accuracy")
      throw model.error(option_name<&Reported::metrics>(model), fmt::format("unknown metric '{}'", metric),
                        "Known: accuracy.");
  return !reported.metrics.empty();
}

std::vector<FreezeRule> frozen_from_config(const Params& model) {
  const std::string_view option = option_name<&Frozen::patterns>(model);
  std::vector<FreezeRule> rules;
  const auto frozen = model.as<Frozen>();
  for (const std::string& text : frozen.patterns) {
    try {
      rules.push_back({NamePattern(text), model.where(option)});
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::usage) throw;
      throw model.error(option, error.what_happened(), error.advice());
    }
  }
  return rules;
}

void require_memory(const VariableStore& variables, const ModelStorage& storage) {
  const ModelMemory needed = model_memory(variables, storage);
  if (storage.memory_bytes <= 0 || needed.total() <= storage.memory_bytes) return;
  const auto largest = std::ranges::max_element(
      variables.variables(), {}, [](const Variable& variable) { return variable.shape.num_elements(); });
  const std::string parts =
      storage.updates
          ? fmt::format(" (values {}, gradients {}, {} slots of the optimizer {})", size_text(needed.values),
                        size_text(needed.gradients), storage.slots, size_text(needed.slots))
          : "";
  throw Error(ErrorKind::device,
              fmt::format("the model takes {} of memory on each rank{}, and a rank has {} here",
                          size_text(needed.total()), parts, size_text(storage.memory_bytes)),
              "",
              fmt::format("Its largest variable is {} ({}). Make the model smaller, start fewer ranks per "
                          "host, or use hosts with more memory.",
                          largest->name, largest->shape.to_string()));
}

}  // namespace

ModelMemory model_memory(const VariableStore& variables, const ModelStorage& storage) {
  ModelMemory memory;
  for (const Variable& variable : variables.variables()) {
    const double bytes = sizeof(float) * static_cast<double>(variable.shape.num_elements());
    memory.values += bytes;
    if (!storage.updates || !variable.trainable) continue;
    const bool is_dense = variable.sparse_index < 0;
    if (is_dense) memory.gradients += bytes;
    memory.slots += storage.slots * (is_dense ? bytes / storage.slot_ranks : bytes);
  }
  return memory;
}

std::span<const ParamSpec> model_table() { return kModelTable; }

ModelOptions model_options(const Node& section, std::span<const std::string> block_names) {
  ErrorCollector mistakes;
  ModelOptions options{.section = Params(section, kModelTable, "section model", mistakes),
                       .regularization = {}};
  mistakes.attempt([&] { options.report_accuracy = reports_accuracy(options.section); });
  mistakes.attempt([&] {
    options.layers = options.section.as<ModelOptions>().layers;
    layers_from_config(options.layers, block_names);
  });
  mistakes.attempt([&] { heads_from_config(options.section); });
  mistakes.attempt(
      [&] { options.regularization = regularization_from_config(options.section.as<Regularized>().lines); });
  mistakes.attempt([&] { options.frozen = frozen_from_config(options.section); });
  mistakes.throw_if_any();
  return options;
}

Graph graph_of(const ModelOptions& options, std::span<const NamedShape> inputs, const Heads& heads,
               DType activations) {
  const bool named = !inputs.front().name.empty();
  Graph graph = named ? graph_from_config(options.layers, inputs)
                      : graph_from_config(options.layers, inputs.front().shape);
  graph.hold_activations_as(activations);
  heads.add_outputs(graph);
  return graph;
}

Model make_model(const ModelOptions& options, std::span<const NamedShape> inputs, const ModelStorage& storage,
                 Device& device) {
  Model model;
  model.report_accuracy = options.report_accuracy;
  model.regularization = options.regularization;
  model.heads = std::make_unique<Heads>(heads_from_config(options.section));
  model.graph = std::make_unique<Graph>(graph_of(options, inputs, *model.heads, storage.activations));
  model.variables = std::make_unique<VariableStore>();
  model.graph->recompute(storage.recompute);
  model.graph->freeze(options.frozen);
  model.graph->freeze_variables(options.frozen_variables);
  model.graph->finish(*model.variables);
  LOCKSTEP_REQUIRE(
      model.variables->num_parameters() > 0, ErrorKind::config, "the model has nothing to learn: {}",
      model.variables->num_frozen_parameters() > 0 ? "all variables are frozen" : "no layer has variables");
  Regularizer(model.regularization, *model.variables, device).keep_dense(*model.variables);
  for (std::size_t i = 0; storage.takes_rows && i < model.variables->variables().size(); ++i)
    if (!storage.takes_rows(model.variables->variables()[i].name))
      model.variables->keep_dense(static_cast<VariableId>(i));
  choose_sparse(*model.variables, storage.batch_size, storage.sparse_below);
  require_memory(*model.variables, storage);
  model.variables->commit(device);
  model.heads->prepare(*model.graph, device);
  return model;
}

namespace {
LabelDemand demand_of(const LabelRule& rule, std::int64_t first, std::int64_t last) {
  return {.first = first,
          .last = last,
          .least = rule.least,
          .most = rule.most,
          .whole = rule.whole,
          .ignored = rule.ignored,
          .wanted = rule.wanted,
          .advice = rule.advice,
          .distribution = rule.distribution,
          .sum_tolerance = LabelRule::kSumTolerance};
}
}  // namespace

void check_labels(Model& model, const UsedDataset& data, bool described) {
  const Dataset& dataset = *data;
  Heads& heads = *model.heads;
  LOCKSTEP_REQUIRE(!heads.takes_labels() || dataset.label_kind() != LabelKind::none, ErrorKind::config,
                   "the data has no labels, which the loss needs");
  const std::int64_t columns = dataset.num_label_columns();
  heads.name_labels(dataset.target_shapes());
  heads.expect_columns(columns);
  for (const Head& head : heads) {
    if (described) break;
    const auto [first, last] = heads.columns_of(head, columns);
    if (first < last) dataset.check_labels(demand_of(heads.rule(head, columns), first, last));
    if (head.weight_column >= 0)
      dataset.check_labels(demand_of(LabelRule::not_negative(), head.weight_column, head.weight_column + 1));
  }
  if (const SampleMixing* const mixing = data.use().mixing.get()) {
    const std::int64_t classes = mixing->label_values();
    LOCKSTEP_REQUIRE(heads.size() == 1, ErrorKind::config,
                     "option mix: the model has {} heads, but mixing takes one", heads.size());
    const Head& head = heads[0];
    LOCKSTEP_REQUIRE(head.table.empty() && !head.loss->ignored() && !head.columns && head.weight_column < 0,
                     ErrorKind::config,
                     "option mix: labels with columns, weights, label_table or ignore_index cannot be mixed");
    LOCKSTEP_REQUIRE(head.shape.num_elements() == classes, ErrorKind::config,
                     "option mix: label rows have {} values, but the model's output has the shape {}",
                     classes, head.shape.to_string());
    heads.expect_columns(classes);
  }
}

}  // namespace lockstep
