// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/sections/changed_defaults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/yaml_node.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kModel = R"(
model:
  frozen: [batch_norm]
  blocks:
    part:
      layers: [dense: {units: 3}, batch_norm: {epsilon: 0.1}]
  layers:
    - batch_norm
    - batch_norm: {momentum: 0.5}
    - batch_norm:
    - repeat: {times: 2, layers: [part, batch_norm]}
    - dense: {units: 2}
)";

std::string after(void (*change)(Node&)) {
  Node root = parse_yaml(kModel, "test");
  change(root);
  return to_yaml(root);
}

int times(const std::string& text, const std::string& part) {
  int n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(ChangedDefaults, AllLayersOfTheKindStateTheOption) {
  const std::string text = after(state_layer_defaults);
  EXPECT_EQ(times(text, "momentum: 0.9"), 4) << text;
  EXPECT_EQ(times(text, "momentum: 0.5"), 1) << text;
  EXPECT_EQ(times(text, "epsilon: 0.1"), 1) << text;
  EXPECT_THAT(text, HasSubstr("frozen: [batch_norm]"));
}

TEST(ChangedDefaults, ARunOfAnEarlierProgramMeansTheFormerValue) {
  Node root = parse_yaml(kModel, "test");
  EXPECT_THAT(state_former_layer_defaults(root),
              ElementsAre("momentum of batch_norm is 0.99, the default when the run began; it is 0.9 now"));
  EXPECT_EQ(times(to_yaml(root), "momentum: 0.99"), 4);
}

TEST(ChangedDefaults, WhatStatesItIsNotChanged) {
  Node root = parse_yaml(kModel, "test");
  state_layer_defaults(root);
  const std::string before = to_yaml(root);
  EXPECT_THAT(state_former_layer_defaults(root), IsEmpty());
  EXPECT_EQ(to_yaml(root), before);
}

}  // namespace
}  // namespace lockstep
