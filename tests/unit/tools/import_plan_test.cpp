// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/exchange/import_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/exchange/ready_maps.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using State = ImportPlan::State;

ImportedTensor tensor(const std::string& name, std::vector<std::int64_t> extents) {
  return {name, {name, DType::f32, std::move(extents), {}}};
}

/// The tensor of a line; empty: none.
std::string taken(const ImportPlan& plan, std::size_t line, const std::vector<ImportedTensor>& tensors) {
  const ImportPlan::Line& found = plan.lines[line];
  const bool has = found.state == State::taken || found.state == State::proposed;
  return has ? tensors[found.tensors.front()].from : "";
}

TEST(ProposeImport, TheLongestCommonEndDecidesBeforeOrderAndShape) {
  const std::vector<ImportedTensor> tensors = {tensor("b/2/conv/kernel", {3, 4, 4}),
                                               tensor("b/1/conv/kernel", {3, 4, 4})};
  const std::vector<WantedVariable> wanted = {{"net/1/conv/kernel", {3, 4, 4}},
                                              {"net/2/conv/kernel", {3, 4, 4}}};
  const ImportPlan plan = propose_import(tensors, wanted, {}, false);
  EXPECT_EQ(taken(plan, 0, tensors), "b/1/conv/kernel");
  EXPECT_EQ(taken(plan, 1, tensors), "b/2/conv/kernel");
  EXPECT_EQ(plan.lines[0].alike, 2);
}

TEST(ProposeImport, EqualLayersStayAmbiguousAndHaveCandidates) {
  const std::vector<ImportedTensor> tensors = {tensor("a/norm/gamma", {8}), tensor("b/norm/gamma", {8})};
  const std::vector<WantedVariable> wanted = {{"x/norm/gamma", {8}}, {"y/norm/gamma", {8}}};
  const ImportPlan plan = propose_import(tensors, wanted, {}, false);
  for (const ImportPlan::Line& line : plan.lines) {
    EXPECT_EQ(line.state, State::ambiguous);
    EXPECT_THAT(line.tensors, ElementsAre(0, 1));
  }
  const ImportPlan ordered = propose_import(tensors, wanted, {}, true);
  EXPECT_EQ(ordered.lines[0].state, State::ambiguous) << "a and b are not one class";
}

TEST(ProposeImport, AClassIsInItsOrderWhereItsNumbersSayIt) {
  const std::vector<ImportedTensor> tensors = {tensor("dense/kernel", {8, 8}),
                                               tensor("dense_1/kernel", {8, 8})};
  const std::vector<WantedVariable> wanted = {{"x/kernel", {8, 8}}, {"y/kernel", {8, 8}}};
  const ImportPlan plan = propose_import(tensors, wanted, {}, true);
  EXPECT_EQ(taken(plan, 0, tensors), "dense/kernel");
  EXPECT_EQ(taken(plan, 1, tensors), "dense_1/kernel");
}

TEST(ProposeImport, ATensorThatAMappingNamesIsNotProposed) {
  const std::vector<ImportedTensor> tensors = {tensor("a/kernel", {2, 3}), tensor("b/kernel", {2, 3})};
  const std::vector<WantedVariable> wanted = {{"x/kernel", {2, 3}}, {"y/kernel", {2, 3}}};
  const ImportMap map(RenameMap{{{"x/", "b/"}}, {}});
  const ImportPlan plan = propose_import(tensors, wanted, map, false);
  EXPECT_EQ(plan.lines[0].state, State::taken);
  EXPECT_EQ(taken(plan, 0, tensors), "b/kernel");
  EXPECT_EQ(taken(plan, 1, tensors), "a/kernel");
}

TEST(ReadyMaps, NamesOfTorchvisionAtAnyDepthOfTheModel) {
  const ImportMap map(*ready_map("torchvision"));
  for (const std::string prefix : {"", "resnet18/", "a/b/"}) {
    EXPECT_EQ(map.renamed(prefix + "conv/kernel"), "conv1/kernel");
    EXPECT_EQ(map.renamed(prefix + "bn/moving_mean"), "bn1/moving_mean");
    EXPECT_EQ(map.renamed(prefix + "stage1/2/block/bn2/gamma"), "layer1/1/bn2/gamma");
    EXPECT_EQ(map.renamed(prefix + "larger/3/down/conv1/kernel"), "layer4/0/conv1/kernel");
    EXPECT_EQ(map.renamed(prefix + "larger/1/block/conv2/kernel"), "layer2/1/conv2/kernel");
    EXPECT_EQ(map.renamed(prefix + "larger/1/down/shortcut/1/conv2d1/kernel"),
              "layer2/0/downsample/0/kernel");
    EXPECT_EQ(map.renamed(prefix + "stage1/first/shortcut/1/batch_norm1/beta"), "layer1/0/downsample/1/beta");
    EXPECT_EQ(map.renamed(prefix + "stage3/rest/5/block/conv3/kernel"), "layer3/5/conv3/kernel");
    EXPECT_EQ(map.renamed(prefix + "logits/bias"), "fc/bias");
  }
  EXPECT_FALSE(ready_map("other"));
}

}  // namespace
}  // namespace lockstep::testing
