// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/report/network_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "support/svg_labels.h"

namespace lockstep::report {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct Segment {
  std::size_t line;
  double x0, y0, x1, y1;
};

std::vector<Segment> segments_of(const DiagramLayout& layout) {
  std::vector<Segment> all;
  for (std::size_t i = 0; i < layout.lines.size(); ++i) {
    const auto& points = layout.lines[i].points;
    for (std::size_t k = 1; k < points.size(); ++k)
      all.push_back({i, std::min(points[k - 1].x, points[k].x), std::min(points[k - 1].y, points[k].y),
                     std::max(points[k - 1].x, points[k].x), std::max(points[k - 1].y, points[k].y)});
  }
  return all;
}

/// Two parts of lines that lie on each other over some length.
std::vector<std::string> doubled(const DiagramLayout& layout) {
  std::vector<std::string> found;
  const std::vector<Segment> all = segments_of(layout);
  const auto name = [&](const Segment& one) {
    const DiagramLine& line = layout.lines[one.line];
    return layout.boxes[line.from].title + " to " + layout.boxes[line.to].title;
  };
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) {
      const Segment &a = all[i], &b = all[k];
      const double wide = std::min(a.x1, b.x1) - std::max(a.x0, b.x0),
                   high = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
      if (wide >= 0 && high >= 0 && wide + high > 0.5) found.push_back(name(a) + " on " + name(b));
    }
  return found;
}

std::vector<std::string> through_boxes(const DiagramLayout& layout) {
  std::vector<std::string> found;
  for (const Segment& one : segments_of(layout))
    for (const DiagramBox& box : layout.boxes)
      if (one.x1 > box.x && one.x0 < box.x + DiagramLayout::kBoxWidth && one.y1 > box.y &&
          one.y0 < box.y + DiagramLayout::kBoxHeight)
        found.push_back(layout.boxes[layout.lines[one.line].to].title + " through " + box.title);
  return found;
}

void expect_apart(const NetworkView& network) {
  const DiagramLayout layout = network_layout(network);
  std::multiset<std::pair<std::size_t, std::size_t>> drawn, wanted;
  for (const DiagramLine& line : layout.lines) drawn.insert({line.from, line.to});
  for (std::size_t to = 0; to < layout.boxes.size(); ++to)
    for (const std::size_t from : layout.boxes[to].inputs) wanted.insert({from, to});
  EXPECT_EQ(drawn, wanted);
  EXPECT_THAT(doubled(layout), IsEmpty());
  EXPECT_THAT(through_boxes(layout), IsEmpty());
  for (const Segment& one : segments_of(layout)) {
    EXPECT_GE(one.x0, 0);
    EXPECT_LE(one.x1, layout.width);
  }
}

void expect_readable(const NetworkView& network) {
  expect_apart(network);
  EXPECT_THAT(label_faults(network_diagram(network)), IsEmpty());
}

NetworkLayer layer(std::string name, std::string kind, std::vector<int> inputs, std::string shape = "4") {
  return {.name = std::move(name),
          .kind = std::move(kind),
          .shape = std::move(shape),
          .inputs = std::move(inputs)};
}

NetworkView residual() {
  NetworkView network;
  network.inputs = {{"features", "224x224x3"}};
  network.layers = {layer("resnet18/stage1/1/block/conv1", "conv2d", {-1}, "112x112x64"),
                    layer("resnet18/stage1/1/block/bn1", "batch_norm", {0}, "112x112x64"),
                    layer("resnet18/stage1/1/block/relu1", "relu", {1}, "112x112x64"),
                    layer("resnet18/stage1/1/block/conv2", "conv2d", {2}, "112x112x64"),
                    layer("resnet18/stage1/1/block/bn2", "batch_norm", {3}, "112x112x64"),
                    layer("resnet18/stage1/1/block/add1", "add", {4, 2}, "112x112x64"),
                    layer("resnet18/larger/1/shortcut", "conv2d", {5}, "56x56x128"),
                    layer("resnet18/larger/1/conv1", "conv2d", {5}, "56x56x128"),
                    layer("resnet18/larger/1/conv2", "conv2d", {7}, "56x56x128"),
                    layer("resnet18/larger/1/add1", "add", {8, 6}, "56x56x128")};
  network.heads = {{"", 9}};
  return network;
}

TEST(NetworkLayout, ResidualNetHasOneLinePerConnection) {
  const NetworkView network = residual();
  expect_readable(network);
  const DiagramLayout layout = network_layout(network);
  EXPECT_EQ(layout.boxes.size(), 9U);  // features, conv1, conv2, add1, shortcut, conv1, conv2, add1, loss
  EXPECT_EQ(std::ranges::count(layout.lines, true, &DiagramLine::is_skip), 1);
  // Names that begin alike keep their ends.
  EXPECT_THAT(network_diagram(network),
              AllOf(HasSubstr("stage1/1/block/conv2</text>"), HasSubstr("stage1/1/block/add1</text>")));
}

TEST(NetworkLayout, AValueThatIsReadTwiceHasOneLine) {
  NetworkView network;
  network.layers = {layer("a", "dense", {-1}), layer("square", "multiply", {0, 0})};
  expect_readable(network);
  EXPECT_EQ(network_layout(network).lines.size(), 2U);
}

TEST(NetworkLayout, UNetTransformerAndManyBranches) {
  NetworkView unet;
  for (int level = 0; level < 3; ++level) {
    unet.layers.push_back(layer("down", "conv2d", {2 * level - 1}));
    unet.layers.push_back(layer("pool", "max_pool", {2 * level}));
  }
  unet.layers.push_back(layer("bottom", "conv2d", {5}));
  for (int level = 2; level >= 0; --level) {
    const int last = static_cast<int>(unet.layers.size()) - 1;
    unet.layers.push_back(layer("larger", "conv2d_transpose", {last}));
    unet.layers.push_back(layer("concat", "concat", {2 * level, last + 1}));
  }
  expect_readable(unet);

  NetworkView transformer;  // each block of the decoder reads what the encoder gives
  transformer.inputs = {{"source", "64"}, {"target", "64"}};
  transformer.layers = {layer("encoder", "attention", {-1}), layer("decoder0", "embedding", {-2})};
  for (int block = 1; block < 4; ++block) {
    const int last = static_cast<int>(transformer.layers.size()) - 1;
    transformer.layers.push_back(layer("norm", "layer_norm", {last}));
    transformer.layers.push_back(layer("cross", "attention", {last + 1, 0}));
    transformer.layers.push_back(layer("add", "add", {last, last + 2}));
  }
  expect_readable(transformer);

  NetworkView wide;
  for (int i = 0; i < 6; ++i) wide.layers.push_back(layer("branch", "dense", {-1}));
  wide.layers.push_back(layer("all", "concat", {0, 1, 2, 3, 4, 5, -1}));
  wide.heads = {{"a_head_with_a_name_that_is_long_for_a_box_of_a_diagram", 6}, {"other", 2}};
  expect_readable(wide);
}

TEST(NetworkLayout, InputsHaveBoxesOfTheirOwn) {
  NetworkView network;
  network.inputs = {{"a_picture_from_above_with_a_long_name", "8x8x1"}, {"table", "5"}};
  network.layers = {layer("inputs", "inputs", {}), layer("conv", "conv2d", {-1}),
                    layer("tower", "dense", {-2}), layer("both", "concat", {1, 2})};
  network.layers[0].is_entry = true;
  expect_readable(network);
  const std::string svg = network_diagram(network);
  EXPECT_THAT(svg, AllOf(HasSubstr(">table</text>"), Not(HasSubstr(">inputs</text>"))));
  const DiagramLayout layout = network_layout(network);
  ASSERT_EQ(layout.boxes.size(), 5U);
  EXPECT_THAT(layout.boxes[3].inputs, ElementsAre(1));
}

TEST(NetworkLayout, AnyGraphIsReadable) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    NetworkView network;
    const int size = 3 + static_cast<int>(random() % 20);
    for (int i = 0; i < size; ++i) {
      std::vector<int> inputs;
      for (std::size_t k = 0, count = 1 + random() % 3; k < count; ++k)
        inputs.push_back(static_cast<int>(random() % (static_cast<std::size_t>(i) + 1)) - 1);
      network.layers.push_back(
          layer("layer" + std::to_string(i), random() % 4 == 0 ? "relu" : "dense", inputs));
    }
    network.heads = {{"one", size - 1}, {"two", size / 2}};
    SCOPED_TRACE(round);
    expect_apart(network);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace lockstep::report
