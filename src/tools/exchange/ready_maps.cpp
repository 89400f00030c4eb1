// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/exchange/ready_maps.h"

#include <fmt/format.h>

namespace lockstep {

namespace {

constexpr int kMostBlocks = 6;  // of a stage, in resnet34 and resnet50

/// Adds the rules for what is below a scope of a built-in net, at any depth of the model: a residual block
/// and its shortcut.
void add_block(RenameMap& map, const std::string& here, int layer, int block) {
  const std::string there = fmt::format("layer{}/{}", layer, block);
  const auto add = [&](const std::string& below, const std::string& theirs) {
    map.rules.emplace_back(fmt::format("re:(.*/|){}/{}(.*)", here, below),
                           fmt::format("{}/{}$2", there, theirs));
  };
  add("shortcut/1/conv2d1/", "downsample/0/");
  add("shortcut/1/batch_norm1/", "downsample/1/");
  add("", "");
}

/// The names in run/sections/built_in_nets.cpp, and those of torchvision/models/resnet.py.
RenameMap torchvision() {
  RenameMap map;
  for (int block = 1; block <= kMostBlocks; ++block) {
    add_block(map, fmt::format("stage1/{}/block", block), 1, block - 1);  // resnet18
    for (int stage = 1; stage <= 4; ++stage)
      add_block(map, fmt::format("stage{}/rest/{}/block", stage, block), stage, block);
  }
  for (int larger = 1; larger <= 3; ++larger) {  // resnet18
    add_block(map, fmt::format("larger/{}/down", larger), larger + 1, 0);
    add_block(map, fmt::format("larger/{}/block", larger), larger + 1, 1);
  }
  for (int stage = 1; stage <= 4; ++stage) add_block(map, fmt::format("stage{}/first", stage), stage, 0);
  map.rules.emplace_back("re:(.*/|)conv/kernel", "conv1/kernel");
  map.rules.emplace_back("re:(.*/|)bn/(.*)", "bn1/$2");
  map.rules.emplace_back("re:(.*/|)logits/(.*)", "fc/$2");
  return map;
}

}  // namespace

std::vector<std::string_view> ready_map_names() { return {"torchvision"}; }

std::optional<RenameMap> ready_map(std::string_view name) {
  return name == "torchvision" ? std::optional(torchvision()) : std::nullopt;
}

}  // namespace lockstep
