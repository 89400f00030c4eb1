// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/exchange/model_variables.h"

#include <algorithm>

#include "comm/self_communicator.h"
#include "core/cpu.h"
#include "run/setup/data_trial.h"
#include "run/setup/normalize_sets.h"
#include "run/setup/run_model.h"
#include "run/setup/run_size.h"
#include "session/checkpoint_choice.h"
#include "tools/exchange/exported_layers.h"

namespace lockstep {

namespace {

constexpr std::string_view kGroup = "variables/";

std::vector<std::int64_t> extents_of(const Shape& shape) {
  const auto extents = shape.extents();
  return {extents.begin(), extents.end()};
}

std::vector<WantedVariable> of_configuration(const std::string& path) {
  Config config = load_config(path);
  try_data_on_chief(config);
  OpenedData opened = open_data(config, true, false);
  if (opened.train) opened.train->find_bad();
  const RunNeeds needs{.train = true};
  RunData data = read_data(config, needs, std::move(opened));
  if (SelfCommunicator self; !data.knows_shapes())
    normalize_sets(self, data.train, data.eval, "", cores_per_rank(1));
  const Model model = model_for(data, config, cpu_device_for_plans(), needs, 0);
  std::vector<WantedVariable> wanted;
  for (const Variable& variable : model.variables->variables())
    wanted.push_back({variable.name, extents_of(variable.shape)});
  return wanted;
}

std::vector<WantedVariable> of_checkpoint(const std::string& target, std::string_view checkpoint) {
  const CheckpointFile file = open_chosen_checkpoint(target, checkpoint);
  std::vector<WantedVariable> wanted;
  for (const CheckpointEntry& entry : file.entries())
    if (entry.path.starts_with(kGroup))
      wanted.push_back({entry.path.substr(kGroup.size()), extents_of(entry.shape)});
  const std::vector<LayerKind> layers = layer_kinds(file.header().config, file.path());
  const auto place = [&](const WantedVariable& variable) {
    const std::string layer = variable.name.substr(0, variable.name.rfind('/'));
    return std::ranges::find(layers, layer, &LayerKind::name) - layers.begin();
  };
  std::ranges::stable_sort(wanted, {}, place);
  return wanted;
}

}  // namespace

std::vector<WantedVariable> model_variables(const std::string& target, std::string_view checkpoint) {
  return target.ends_with(".yaml") || target.ends_with(".yml") ? of_configuration(target)
                                                               : of_checkpoint(target, checkpoint);
}

}  // namespace lockstep
