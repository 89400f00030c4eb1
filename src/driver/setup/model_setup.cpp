// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/setup/model_setup.h"

#include <algorithm>
#include <limits>

#include "core/named_options.h"
#include "data/reader_table.h"
#include "driver/setup/loss_scale.h"
#include "session/plugin.h"
#include "session/warm_start.h"
#include "train/sparse_gradients.h"

namespace lockstep {

namespace {

constexpr ParamSpec kModelTable[] = {
    {"layers", ParamType::node, kRequired, "", "The layers, in order; see the list of layers."},
    {"loss", ParamType::node, "softmax_cross_entropy", "",
     "What training makes small: a loss on the last layer's output; see the list of losses."},
    {"heads", ParamType::node, "null", "list or null",
     "In place of loss: several outputs with a loss each, see the options of a head. Training makes the sum "
     "of "
     "weight x loss small."},
    {"regularization", ParamType::node, "null", "list or null",
     "L1 and L2 of chosen variables, a part of the training loss: see the options of a line."},
    {"metrics", ParamType::strings, "[accuracy]", "", "What is reported beside the loss: accuracy."},
};

constexpr ParamSpec kDataKeys[] = {
    {"format", ParamType::string, kRequired, "", "Name of the reader."},
    {"train", ParamType::node, "null", "", "Options of the training set that differ from those beside it."},
    {"eval", ParamType::node, "null", "", "Options of the evaluation set that differ. null: no evaluation."},
};
bool is_data_key(std::string_view key) {
  return std::any_of(std::begin(kDataKeys), std::end(kDataKeys),
                     [&](const ParamSpec& spec) { return spec.name == key; });
}

/// Whether the configuration has a data set of its own for `split`; `eval: null` says that there is none.
bool has_split(const Config& config, std::string_view split) {
  const Node* own = config.data.find(split);
  return own != nullptr && !is_null(*own);
}

Params model_params(const Config& config) { return Params(config.model, kModelTable, "section model"); }

bool reports_accuracy(const Params& model) {
  for (const std::string& metric : model.strings("metrics"))
    if (metric != "accuracy")
      throw model.error("metrics", fmt::format("unknown metric '{}'", metric), "Known: accuracy.");
  return !model.strings("metrics").empty();
}

Params reader_params(const Config& config, std::string_view split) {
  const std::string format = data_format(config.data);
  return Params(split_options(config.data, split),
                find_reader(format, config.data.find("format")->where).table,
                fmt::format("section data ({}, reader {})", split, format));
}

}  // namespace

std::span<const ParamSpec> model_table() { return kModelTable; }
std::span<const ParamSpec> data_table() { return kDataKeys; }

std::string data_format(const Node& data) {
  const Node* format = data.find("format");
  if (format == nullptr || format->kind != Node::Kind::scalar)
    throw Error(ErrorKind::config, "section data has no format", data.where,
                "Name a reader: format: csv, idx or hdf5.");
  return format->text;
}

Node split_options(const Node& data, std::string_view split) {
  Node merged;
  merged.kind = Node::Kind::map;
  merged.where = data.where;
  auto put = [&](const std::string& key, const Node& value, const std::string& where) {
    for (std::size_t i = 0; i < merged.entries.size(); ++i)
      if (merged.entries[i].first == key) {
        merged.entries[i].second = value;
        merged.entry_where[i] = where;
        return;
      }
    merged.entries.emplace_back(key, value);
    merged.entry_where.push_back(where);
  };
  auto put_all = [&](const Node& map) {
    for (std::size_t i = 0; i < map.entries.size(); ++i)
      put(map.entries[i].first, map.entries[i].second,
          i < map.entry_where.size() ? map.entry_where[i] : map.where);
  };
  for (std::size_t i = 0; i < data.entries.size(); ++i)
    if (!is_data_key(data.entries[i].first))
      put(data.entries[i].first, data.entries[i].second,
          i < data.entry_where.size() ? data.entry_where[i] : data.where);
  if (const Node* own = data.find(split); own != nullptr) {
    if (own->kind != Node::Kind::map && own->kind != Node::Kind::null)
      throw Error(ErrorKind::config, fmt::format("data.{} must be a map of options", split), own->where);
    put_all(*own);
  }
  return merged;
}

void check_config(const Config& config) {
  load_plugins(config);
  const Params model = model_params(config);
  reports_accuracy(model);
  layers_from_config(model.node("layers"));
  heads_from_config(model);
  regularization_from_config(model.node("regularization"));
  make_optimizer(config.optimizer);
  warm_start_options(config);
  reader_params(config, "train");
  if (has_split(config, "eval")) reader_params(config, "eval");
  if (!metrics_from_config(config.eval.node("metrics")).empty() && !has_split(config, "eval"))
    throw config.eval.error("metrics", "there is no evaluation set to compute metrics of",
                            "Add `eval:` to section data, or leave the metrics out.");
}

std::unique_ptr<Dataset> open_split(const Config& config, std::string_view split) {
  if (split != "train" && !has_split(config, split)) return nullptr;
  return open_dataset(data_format(config.data), reader_params(config, split), config.base_directory);
}

Model make_model(const Config& config, const Shape& features, Device& device) {
  const Params params = model_params(config);
  Model model;
  model.metric_accuracy = reports_accuracy(params);
  model.heads = std::make_unique<Heads>(heads_from_config(params));
  model.graph = std::make_unique<Graph>(graph_from_config(params.node("layers"), features));
  model.graph->hold_activations_as(activation_type(config));
  model.variables = std::make_unique<VariableStore>();
  model.heads->add_outputs(*model.graph);
  model.graph->finish(*model.variables);
  LOCKSTEP_REQUIRE(model.variables->num_parameters() > 0, ErrorKind::config,
                   "the model has nothing to learn: no layer has variables");
  model.regularization = regularization_from_config(params.node("regularization"));
  Regularizer(model.regularization, *model.variables, device).keep_dense(*model.variables);
  // A lazy optimizer must know which rows a step touches, however many they are.
  const bool lazy = make_optimizer(config.optimizer)->lazy();
  choose_sparse(*model.variables, config.train.integer("batch_size"),
                lazy ? std::numeric_limits<double>::infinity() : config.comm.real("sparse_below"));
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

std::vector<BoundMetric> evaluation_metrics(const Config& config, const Model& model, const Dataset& eval) {
  return bind_metrics(config.eval.node("metrics"), *model.heads, *model.graph, eval);
}

std::string variable_table_text(const VariableStore& variables) {
  std::string text;
  for (const Variable& variable : variables.variables())
    text += fmt::format("{} {} {}\n", variable.name, variable.shape.to_string(),
                        variable.trainable ? "trainable" : "state");
  return text;
}

int choose_shards(const Config& config, std::optional<std::int64_t> from_checkpoint, int total_cores) {
  const Params& general = config.general;
  const std::int64_t batch_size = config.train.integer("batch_size");
  if (!general.has("shards"))
    return static_cast<int>(from_checkpoint.value_or(std::min<std::int64_t>(total_cores, batch_size)));
  const std::int64_t shards = general.integer("shards");
  if (from_checkpoint && *from_checkpoint != shards)
    throw general.error("shards",
                        fmt::format("shards is {}, but the run began with {}", shards, *from_checkpoint),
                        "Leave shards as it was (any number of ranks up to it gives the same bits), or start "
                        "a new run directory.");
  if (shards > batch_size)
    throw general.error("shards",
                        fmt::format("{} shards are more than the batch_size of {}", shards, batch_size),
                        "Every microshard needs at least one sample of a batch.");
  return static_cast<int>(shards);
}

}  // namespace lockstep
