// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/run_model.h"

#include <fmt/format.h>
#include <algorithm>
#include <limits>
#include <memory>

#include "core/error.h"
#include "data/reader_dataset.h"
#include "data/table_info.h"
#include "data/text_info.h"
#include "optim/optimizer.h"
#include "train/evaluation_metrics.h"
#include "train/loss_report.h"
#include "train/run_schedules.h"
#include "train/sparse_gradients.h"

namespace lockstep {

namespace {

std::vector<std::string> step_metric_names(const Config& config, const Model& model,
                                           const RunSchedules& schedules) {
  const LossReport report(*model.heads, !model.regularization.empty());
  std::vector<std::string> names{"loss", "accuracy"};
  names.insert(names.end(), report.names().begin(), report.names().end());
  for (const ScheduledNumber* number : schedules.numbers()) names.push_back(number->option());
  for (const Optimizer::GroupRate& rate : schedules.optimizer().group_rates()) names.push_back(rate.name);
  if (config.precision.loss_scale.used()) names.emplace_back("loss_scale");
  if (config.gradients.measures()) names.emplace_back("gradient_norm");
  if (config.gradients.clips_norm()) names.emplace_back("clipped");
  if (config.gradients.noise_scale) names.emplace_back("noise_scale");
  for (const char* name : {"samples", "communication_seconds", "input_seconds"}) names.emplace_back(name);
  return names;
}

std::vector<std::string> evaluation_names(const Config& config, const Model& model, const UsedDataset& eval) {
  std::vector<std::string> names{"loss"};
  if (model.accuracy()) names.emplace_back("accuracy");
  const LossReport report(*model.heads);
  for (const std::string& part : report.names())
    if (model.reports(part)) names.push_back(part);
  for (const BoundMetric& bound : bind_metrics(config.eval.metrics, *model.heads, *model.graph, eval))
    for (const std::string& name : bound.number_names())
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  return names;
}

void check_same_shapes(std::span<const NamedShape> train, std::span<const NamedShape> eval) {
  for (std::size_t i = 0; i < train.size(); ++i)
    if (!(train[i].shape == eval[i].shape))
      throw Error(ErrorKind::data,
                  fmt::format("{}training samples are {}, evaluation samples {}",
                              train[i].name.empty() ? "" : fmt::format("input {}: ", train[i].name),
                              train[i].shape.to_string(), eval[i].shape.to_string()));
}

/// Class numbers must mean the same in both sets.
void check_same_classes(const Dataset& train, const Dataset& eval) {
  const std::vector<std::string>&of_train = train.class_names(), &of_eval = eval.class_names();
  if (of_train.empty() || of_eval.empty() || of_train == of_eval) return;
  const auto at = std::ranges::mismatch(of_train, of_eval);
  const auto name = [](auto place, const std::vector<std::string>& names) {
    return place == names.end() ? "nothing" : fmt::format("'{}'", *place);
  };
  throw Error(
      ErrorKind::data,
      fmt::format("the classes of the evaluation set are not those of the training set: class {} is {} "
                  "there, and {} in the training set",
                  at.in1 - of_train.begin(), name(at.in2, of_eval), name(at.in1, of_train)),
      eval.where(0),
      "Both sets need the same classes: folders of the same names, or the same option classes.");
}

/// Features must be the same columns in both sets.
void check_same_columns(const ReaderDataset& train, const ReaderDataset& eval) {
  if (train.table() == nullptr || eval.table() == nullptr) return;
  const std::vector<TableInfo::Column>&of_train = train.table()->features, &of_eval = eval.table()->features;
  for (std::size_t i = 0; i < std::min(of_train.size(), of_eval.size()); ++i) {
    const TableInfo::Column &column = of_train[i], &other = of_eval[i];
    if (column.values != other.values)
      throw Error(ErrorKind::data,
                  fmt::format("the values of {} are not those of the training set", name_of(other)),
                  eval.where(0), "Give both sets the same option categories.");
    if (!column.name.empty() && !other.name.empty() && column.name != other.name)
      throw Error(ErrorKind::data,
                  fmt::format("feature {} is {} in the evaluation set, but {} in the training set", i,
                              name_of(other), name_of(column)),
                  eval.where(0),
                  "Name the features with the option columns, which orders them alike in both.");
  }
}

/// A layer that counts the ids of a text must know the token after their end, which is not 0 with a tokenizer
/// from a file.
void check_padding(const Model& model, const Dataset& data) {
  const std::vector<DatasetPart> inputs = data.inputs();
  for (const Graph::Node& node : model.graph->nodes()) {
    const std::optional<float> padding = node.layer->traits().padding;
    if (!padding || node.inputs.size() != 1) continue;
    const Graph::Source source = node.inputs[0];
    if (source.node > 0 || (source.node == 0 && inputs.size() == 1)) continue;  // of another layer
    const TextInfo* const text = inputs[static_cast<std::size_t>(source.output)].data->text();
    if (text == nullptr || text->byte_pairs == nullptr || *padding == static_cast<float>(text->padding_id))
      continue;
    throw Error(
        ErrorKind::config,
        fmt::format("layer {} counts the ids before a padding of {}, but that of the text is {} ('{}')",
                    node.layer->name(), *padding, text->padding_id,
                    text->vocabulary.word(text->padding_id).text),
        node.where, fmt::format("Write sequence_length: {{padding: {}}}.", text->padding_id));
  }
}

/// How the model's values and gradients are held. `updates`, `memory_bytes`: see ModelStorage.
ModelStorage model_storage(const Config& config, const Optimizer* optimizer, bool updates, int ranks,
                           double memory_bytes) {
  if (optimizer == nullptr)  // for evaluation and prediction: there are no gradients
    return {.activations = config.precision.compute,
            .batch_size = config.train.batch_size,
            .sparse_below = 0,
            .updates = updates,
            .memory_bytes = memory_bytes};
  // A lazy optimizer must know which rows a step touches, however many they are.
  const bool lazy = optimizer->lazy();
  return {.activations = config.precision.compute,
          .recompute = config.train.recompute,
          .batch_size = config.train.batch_size,
          .sparse_below = lazy                    ? std::numeric_limits<double>::infinity()
                          : config.cluster.used() ? 0  // servers take dense gradients
                                                  : config.comm.sparse_below.value_or(
                                                        sparse_share(config.general.device != "cpu", ranks)),
          .takes_rows = [optimizer](std::string_view name) { return optimizer->takes_rows(name); },
          .updates = updates,
          .slots = static_cast<int>(optimizer->slot_names().size()),
          .slot_ranks = config.optimizer.shard ? ranks : std::max(config.cluster.servers, 1),
          .memory_bytes = memory_bytes};
}

}  // namespace

Model model_for(const RunData& data, const Config& config, const Optimizer* optimizer, Device& device,
                const RunNeeds& needs, double memory_bytes) {
  Model model =
      make_model(config.model, data.first().input_shapes(),
                 model_storage(config, optimizer, needs.updates, needs.ranks, memory_bytes), device);
  check_padding(model, data.first());
  if (needs.updates) config.optimizer.check(*model.variables);
  if (data.train) check_labels(model, data.train, data.train_is_described);
  // A prediction needs no labels. An evaluation says itself that it does.
  if (data.eval && (needs.updates || data.eval->label_kind() != LabelKind::none))
    check_labels(model, data.eval);
  if (!data.train || !data.eval) return model;
  check_same_shapes(data.train->input_shapes(), data.eval->input_shapes());
  check_same_classes(*data.train, *data.eval);
  const std::vector<DatasetPart> of_train = data.train->parts(), of_eval = data.eval->parts();
  for (std::size_t i = 0; i < of_train.size(); ++i) check_same_columns(*of_train[i].data, *of_eval[i].data);
  return model;
}

Model model_for(const RunData& data, const Config& config, Device& device, const RunNeeds& needs,
                double memory_bytes) {
  return model_for(data, config, config.optimizer.make().get(), device, needs, memory_bytes);
}

RunNames run_names(const Config& config, const Model& model, const UsedDataset& train,
                   const UsedDataset& eval, const RunSchedules& schedules) {
  RunNames names{.step_metrics = step_metric_names(config, model, schedules)};
  if (train && !train->streams().empty())
    for (const char* name : {"input/wait_seconds", "input/blocks_ready", "input/reader_threads"})
      names.step_metrics.emplace_back(name);
  if (eval) names.evaluation = evaluation_names(config, model, eval);
  for (const Variable& variable : model.variables->variables()) {
    names.variables.push_back(variable.name);
    if (variable.trainable) names.trained_variables.push_back(variable.name);
  }
  if (eval)
    for (const MetricSpec& metric : config.eval.metrics)
      if (metric.entry->name == "confusion_matrix") names.matrices.push_back(metric.name);
  for (const Graph::Node& node : model.graph->nodes()) names.layers.push_back(node.layer->name());
  return names;
}

}  // namespace lockstep
