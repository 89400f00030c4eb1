// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A graph for TensorBoard's page Graphs, and the times of its nodes in one step. EventWriter::graph() and
// EventWriter::run_metadata() take the results.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// "/" in a name makes groups that can be opened. An input is the name of a node, "name:1" for its second
/// output, or "^name" for one that only runs before.
struct GraphNode {
  std::string name, op;
  std::vector<std::string> inputs;
  std::string device = {};
  std::vector<std::vector<std::int64_t>> output_shapes = {};  ///< -1: any extent
  std::vector<std::pair<std::string, std::string>> texts = {};
  std::vector<std::pair<std::string, std::int64_t>> numbers = {};
};
std::string graph_def(std::span<const GraphNode> nodes);

/// When a node ran, in microseconds, and what it holds.
struct NodeTime {
  std::string node, label = {};
  std::int64_t begin_us = 0, end_us = 0;
  std::uint32_t thread = 0;
  std::int64_t bytes = 0;  ///< of its outputs; 0: unknown
};
struct DeviceTimes {
  std::string device;
  std::vector<NodeTime> nodes;
};
std::string run_metadata(std::span<const DeviceTimes> devices);

}  // namespace lockstep
