// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Helpers of the model's tests: layers and graphs from YAML text, random numbers, comparisons in which NaN
// fails.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "config/yaml_node.h"
#include "core/philox.h"
#include "core/range.h"
#include "model/graph.h"
#include "model/layer_table.h"

namespace lockstep {

using Values = std::vector<double>;

/// "conv2d: {filters: 4, kernel: 3}"
inline std::unique_ptr<Layer> layer_from(const std::string& yaml) {
  Node list;
  list.kind = Node::Kind::list;
  list.items.push_back(parse_yaml(yaml, "test"));
  return std::move(layers_from_config(list).front().layer);
}

/// A list of layers: "[relu, dense: {units: 3}]" or in block style.
inline Graph graph_from(const std::string& yaml, const Shape& features) {
  return graph_from_config(parse_yaml(yaml, "test"), features);
}

/// Uniform in [low, high), exact in float32; the same numbers for the same stream.
inline std::vector<float> random_floats(std::size_t count, std::uint32_t stream, double low = -1,
                                        double high = 1) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const PhiloxBlock words = philox_words(11, stream, 0, 0, static_cast<std::uint32_t>(i));
    values[i] = static_cast<float>(low + (high - low) * static_cast<double>(philox_uniform(words[0])));
  }
  return values;
}

template <typename Range>
Values doubles(const Range& range) {
  return Values(range.begin(), range.end());
}

/// |actual - expected| <= relative * (|expected| + the largest |expected|) for every element; NaN fails.
template <typename Actual>
void expect_close(const Actual& actual, const Values& expected, double relative, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 0;
  for (double value : expected) largest = std::max(largest, std::abs(value));
  int reported = 0;
  for (std::size_t i = 0; i < expected.size() && reported < 5; ++i) {
    const double tolerance = relative * (std::abs(expected[i]) + largest);
    if (std::abs(static_cast<double>(actual[i]) - expected[i]) <= tolerance) continue;
    ADD_FAILURE() << what << ": element " << i << " is " << actual[i] << ", not " << expected[i]
                  << " (tolerance " << tolerance << ")";
    ++reported;
  }
}

}  // namespace lockstep
