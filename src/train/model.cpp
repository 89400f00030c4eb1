// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/model.h"

#include <fmt/format.h>

#include "core/error.h"
#include "train/sparse_gradients.h"

namespace lockstep {

namespace {

constexpr ParamSpec kModelTable[] = {
    {"layers", ParamType::node, kRequired, "", "The layers, in order; see the list of layers."},
    {"loss", ParamType::node, "softmax_cross_entropy", "",
     "Loss on the output of the last layer, which training minimizes; see the list of losses."},
    {"heads", ParamType::node, "null", "list or null",
     "Instead of loss: several outputs with a loss each; see the options of a head. Training minimizes "
     "the sum of weight x loss."},
    {"regularization", ParamType::node, "null", "list or null",
     "L1 and L2 regularization of chosen variables, a part of the training loss; see the options of a "
     "line."},
    {"metrics", ParamType::strings, "[accuracy]", "", "What is reported beside the loss: accuracy."},
};

bool reports_accuracy(const Params& model) {
  for (const std::string& metric : model.strings("metrics"))
    if (metric != "accuracy")
      throw model.error("metrics", fmt::format("unknown metric '{}'", metric), "Known: accuracy.");
  return !model.strings("metrics").empty();
}

}  // namespace

std::span<const ParamSpec> model_table() { return kModelTable; }

ModelOptions model_options(const Node& section) {
  ModelOptions options{.section = Params(section, kModelTable, "section model"), .regularization = {}};
  options.report_accuracy = reports_accuracy(options.section);
  layers_from_config(options.section.node("layers"));
  heads_from_config(options.section);
  options.regularization = regularization_from_config(options.section.node("regularization"));
  return options;
}

Model make_model(const ModelOptions& options, const Shape& features, const ModelStorage& storage,
                 Device& device) {
  Model model;
  model.report_accuracy = options.report_accuracy;
  model.regularization = options.regularization;
  model.heads = std::make_unique<Heads>(heads_from_config(options.section));
  model.graph = std::make_unique<Graph>(graph_from_config(options.section.node("layers"), features));
  model.graph->hold_activations_as(storage.activations);
  model.variables = std::make_unique<VariableStore>();
  model.heads->add_outputs(*model.graph);
  model.graph->finish(*model.variables);
  LOCKSTEP_REQUIRE(model.variables->num_parameters() > 0, ErrorKind::config,
                   "the model has nothing to learn: no layer has variables");
  Regularizer(model.regularization, *model.variables, device).keep_dense(*model.variables);
  choose_sparse(*model.variables, storage.batch_size, storage.sparse_below);
  model.variables->commit(device);
  model.heads->prepare(*model.graph, device);
  return model;
}

void check_labels(Model& model, const Dataset& dataset) {
  Heads& heads = *model.heads;
  LOCKSTEP_REQUIRE(!heads.takes_labels() || dataset.label_kind() != LabelKind::none, ErrorKind::config,
                   "the data has no labels, which the loss needs");
  const std::int64_t columns = dataset.num_label_columns();
  heads.expect_columns(columns);
  for (const Head& head : heads) {
    const auto [first, last] = heads.columns_of(head, columns);
    if (first < last) dataset.check_labels(heads.rule(head, columns), first, last);
  }
}

}  // namespace lockstep
