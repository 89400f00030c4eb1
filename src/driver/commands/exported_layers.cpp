// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/commands/exported_layers.h"

#include "driver/config/config.h"
#include "model/graph.h"

namespace lockstep {

std::vector<LayerKind> layer_kinds(const std::string& config, const std::string& where) {
  std::vector<LayerKind> kinds;
  if (config.empty()) return kinds;
  const Config loaded = config_from_text(config, where);
  for (const LayerDraft& draft : layers_from_config(loaded.model.section.node("layers")))
    kinds.push_back({draft.layer->name(), draft.layer->kind()});
  return kinds;
}

}  // namespace lockstep
