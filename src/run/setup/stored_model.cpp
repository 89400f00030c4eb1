// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/stored_model.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <utility>

#include "comm/agree.h"
#include "comm/self_communicator.h"
#include "data/opened_sets.h"
#include "data/transform_list.h"
#include "run/setup/normalize_sets.h"
#include "run/setup/run_directory.h"
#include "run/setup/run_model.h"
#include "session/checkpoint_choice.h"
#include "session/kept_data.h"
#include "session/run_state.h"
#include "train/model_graph.h"

namespace lockstep {

namespace {

/// The training set as the checkpoint describes it, not yet normalised. A program gives numbers as float32,
/// whatever type the files had.
UsedDataset described_samples(const FoundCheckpoint& found, const Config& config) {
  auto description = kept_description(found.header.kept.get(), found.path);
  if (!description || !description->fits(config.data))
    throw Error(
        ErrorKind::checkpoint, "does not describe its samples: an earlier version of Lockstep has written it",
        found.path,
        "Let the run write a checkpoint with this version (train it for one more step), and take that one.");
  for (std::size_t i = 0; i < num_inputs(config.data); ++i) description->parts[i].type = DType::f32;
  return OpenedSets(config.data, *description, config.base_directory).finish({});
}

/// The inputs as `lockstep predict` reads them.
std::vector<ReaderDataset> prediction_inputs(const UsedDataset& samples, const Config& config) {
  std::vector<ReaderDataset> inputs;
  const std::vector<const DataInput*> sets = sets_of(config.data);
  for (const DatasetPart& part : samples->inputs()) {
    const DataInput& set = *sets[inputs.size()];
    TransformList transforms(set.eval.value_or(set.train), config.base_directory);
    transforms.use_text(part.data->shared_text());
    ReaderDataset input = part.data->with_transforms(std::move(transforms), false);
    if (input.feature_shape() != part.data->feature_shape())
      throw Error(ErrorKind::config,
                  fmt::format("the samples of prediction have the shape {}, and the model takes {}",
                              input.feature_shape().to_string(), part.data->feature_shape().to_string()),
                  part.name.empty() ? "section data" : fmt::format("data.inputs.{}", part.name),
                  "The transforms of the evaluation set make other samples than those of training.");
    inputs.push_back(std::move(input));
  }
  return inputs;
}

}  // namespace

StoredModel load_stored_model(Communicator& world, const std::string& target, const FoundCheckpoint& found,
                              bool averages) {
  StoredModel stored{
      .path = found.path, .global_step = found.header.global_step, .shards = found.header.shards};
  RunData data{.train_is_described = true};
  agree(
      world,
      [&] {
        stored.config = config_in(found.header.config, found.path);
        data.train = described_samples(found, stored.config);
      },
      "reading the description of a model");
  std::error_code failed;
  const bool is_folder = std::filesystem::is_directory(target, failed);
  normalize_sets(world, data.train, data.eval, is_folder ? target : run_directory_of(target), 1,
                 found.header.kept.get());
  stored.samples = data.train;
  agree(
      world,
      [&] {
        stored.inputs = prediction_inputs(stored.samples, stored.config);
        stored.model = model_for(data, stored.config, cpu_device(), {}, 0);
        stored.model.variables->initialize(stored.config.general.seed);
      },
      "building a model");
  stored.averaged_variables = restore_variables(world, found, *stored.model.variables, averages);
  stored.units = output_units(*stored.samples, *stored.model.heads);
  return stored;
}

StoredModel load_stored_model(const std::string& target, const std::string& checkpoint, bool averages) {
  auto file = std::make_shared<const CheckpointFile>(open_chosen_checkpoint(target, checkpoint));
  SelfCommunicator self;
  return load_stored_model(self, target, {.path = file->path(), .header = file->header(), .file = file},
                           averages);
}

Graph graph_of(const StoredModel& stored) {
  const std::vector<NamedShape> inputs = stored.samples->input_shapes();
  Graph graph = graph_of(stored.config.model, inputs, *stored.model.heads, stored.config.precision.compute);
  VariableStore variables;
  graph.finish(variables);
  return graph;
}

}  // namespace lockstep
