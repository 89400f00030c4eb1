// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/exchange/exported_layers.h"

#include "model/graph.h"
#include "run/sections/config.h"

namespace lockstep {

std::vector<LayerKind> layer_kinds(const std::string& config, const std::string& where) {
  std::vector<LayerKind> kinds;
  if (config.empty()) return kinds;
  const Config loaded = config_from_text(config, where);
  for (const LayerDraft& draft : layers_from_config(loaded.model.layers))
    kinds.push_back({draft.layer->name(), draft.layer->kind()});
  return kinds;
}

}  // namespace lockstep
