// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/jobs/onnx_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "comm/agree.h"
#include "comm/self_communicator.h"
#include "comm/share_text.h"
#include "config/named_options.h"
#include "exchange/checkpoint_tensors.h"
#include "exchange/onnx_net.h"
#include "io/output_file.h"
#include "model/graph.h"
#include "model/graph_inputs.h"
#include "model/heads.h"
#include "model/layer_table.h"
#include "run/jobs/onnx_input_steps.h"
#include "run/sections/config.h"
#include "run/setup/normalize_sets.h"
#include "run/setup/run_data.h"
#include "session/checkpoint_choice.h"

namespace lockstep {

namespace {

/// What the samples of the run are, as its checkpoint says; `fitted`: with the numbers of their
/// normalisation. The training data are opened only for a checkpoint that says nothing.
UsedDataset trained_samples(const Config& config, const CheckpointFile& file, const std::string& run_dir,
                            bool fitted) {
  RunNeeds needs{.train = true, .kept_in = run_dir, .kept = file.header().kept, .described = true};
  RunData data{.train = described_training_set(config, needs)};
  SelfCommunicator self;
  if (!data.train) {
    try {
      OpenedData opened = open_data(config, true, false);
      share_bad_records(self, opened, "", 1);
      data = read_data(config, needs, std::move(opened));
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::bug) throw;
      throw without_description(error, needs);
    }
  }
  if (fitted || !data.knows_shapes())
    normalize_sets(self, data.train, data.eval, run_dir.empty() ? "." : run_dir, 1, needs.kept.get());
  return data.train;
}

/// The options of each layer of the configuration's list.
std::vector<Params> options_of(const Node& layers) {
  std::vector<Params> all;
  for (const Node& item : layers.items) {
    const NamedOptions named = named_options(item, "layer");
    const LayerEntry& entry = layer_table().at(named);
    std::vector<ParamSpec> table(entry.table.begin(), entry.table.end());
    table.insert(table.end(), common_layer_table().begin(), common_layer_table().end());
    all.emplace_back(named.options, table, "layer " + named.name);
  }
  return all;
}

/// The net of a run with these values of its variables. `run_dir` may keep the numbers of data.normalize;
/// empty: none does.
OnnxNet onnx_net(const CheckpointFile& file, std::vector<ForeignTensor> variables, const std::string& run_dir,
                 const OnnxExportOptions& choice) {
  const Config config = config_from_text(file.header().config, file.path());
  const UsedDataset trained = trained_samples(config, file, run_dir, choice.with_normalisation);
  OnnxNet net;
  net.inputs = trained->input_shapes();
  net.inputs_channels_first = choice.inputs_channels_first;
  if (choice.with_normalisation) net.prepared = onnx_inputs(config.data, *trained);
  const Node& layers = config.model.layers;
  const bool named = !net.inputs.front().name.empty();
  Graph graph =
      named ? graph_from_config(layers, net.inputs) : graph_from_config(layers, net.inputs.front().shape);
  if (!named) net.inputs.front().name = "features";
  heads_from_config(config.model.section).add_outputs(graph);
  VariableStore store;
  graph.finish(store);
  const std::vector<Params> options = options_of(layers);
  const auto nodes = graph.nodes();
  const std::size_t before = nodes.size() - options.size();  // the node of several inputs
  LOCKSTEP_CHECK(before == (named ? 1 : 0), "{} nodes of {} layers", nodes.size(), options.size());
  const auto value_of = [&](Graph::Source source) -> std::string {
    if (source.node < 0) return net.inputs.front().name;
    if (static_cast<std::size_t>(source.node) < before)
      return net.inputs[static_cast<std::size_t>(source.output)].name;
    return OnnxNet::value_of(nodes[static_cast<std::size_t>(source.node)].layer->name(), source.output);
  };
  for (std::size_t i = before; i < nodes.size(); ++i) {
    const Graph::Node& node = nodes[i];
    OnnxLayer layer;
    layer.name = layer.owner = node.layer->name();
    for (int owner = node.shared_with; owner >= 0; owner = nodes[static_cast<std::size_t>(owner)].shared_with)
      layer.owner = nodes[static_cast<std::size_t>(owner)].layer->name();
    layer.kind = node.layer->kind();
    layer.options = options[i - before];
    for (const Graph::Source source : written_inputs(graph, static_cast<int>(i))) {
      layer.inputs.push_back(value_of(source));
      layer.in.push_back(graph.shape(source));
    }
    layer.out = node.outputs;
    net.layers.push_back(std::move(layer));
  }
  for (const Graph::Source source : graph.outputs()) net.outputs.push_back(value_of(source));
  for (ForeignTensor& variable : variables)
    if (variable.dtype == DType::f32) net.variables.emplace(variable.name, std::move(variable));
  for (const Variable& wanted : store.variables()) {
    const auto found = net.variables.find(wanted.name);
    if (found == net.variables.end() || !std::ranges::equal(found->second.extents, wanted.shape.extents()))
      throw Error(ErrorKind::checkpoint,
                  fmt::format("has no variable {} of the shape {}", wanted.name, wanted.shape.to_string()),
                  file.path(), "The samples of the data have another shape than those of the run.");
  }
  return net;
}

}  // namespace

OnnxExport export_onnx(const std::string& target, const std::string& output,
                       const OnnxExportOptions& options) {
  const CheckpointFile file = open_chosen_checkpoint(target, options.checkpoint);
  OutputFile to(output, std::vector{file.path()});
  std::error_code failed;
  const bool in_run = std::filesystem::is_directory(target, failed);
  OnnxNet net = onnx_net(file, checkpoint_tensors(file, options.averages), in_run ? target : "", options);
  OnnxExport done{.global_step = file.header().global_step, .layers = std::ssize(net.layers), .folded = {}};
  if (options.fold_batch_norm) done.folded = fold_batch_norms(net);
  std::vector<std::pair<std::string, std::string>> facts = checkpoint_facts(file.header());
  facts.emplace_back(
      "inputs",
      fmt::format("samples {}, {}",
                  options.with_normalisation
                      ? "as the reader gives them, before scale, offset, mean, std, normalize, whiten and "
                        "transforms of section data"
                      : "as the layers read them, after scale, offset, mean, std, normalize, whiten and "
                        "transforms of section data",
                  options.inputs_channels_first ? "channels first" : "channels last"));
  facts.emplace_back("outputs",
                     "of the layers that the heads read, without the softmax or sigmoid of a loss");
  const std::string bytes = onnx_file(net, facts);
  to.append(bytes.data(), bytes.size());
  to.publish();
  return done;
}

OnnxExport export_onnx(Communicator& world, const std::string& target, const std::string& output,
                       const OnnxExportOptions& options) {
  constexpr const char* kWhat = "exporting to ONNX";
  OnnxExport done;
  agree(
      world,
      [&] {
        if (world.rank() == 0) done = export_onnx(target, output, options);
      },
      kWhat);
  std::int64_t numbers[] = {done.global_step, done.layers, std::ssize(done.folded)};
  world.broadcast(numbers, sizeof numbers, 0, kWhat);
  done.global_step = numbers[0];
  done.layers = numbers[1];
  done.folded.resize(static_cast<std::size_t>(numbers[2]));
  for (std::string& name : done.folded) name = broadcast_text(world, name, kWhat);
  return done;
}

}  // namespace lockstep
