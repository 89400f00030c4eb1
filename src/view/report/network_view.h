// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The network of a run as a report shows it: its layers with what is known of them. Shapes and FLOPs need the
// model, hence the data; without them the configuration gives layers and connections, and a checkpoint the
// numbers of parameters.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "view/report/opened_run.h"

namespace lockstep::report {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct NetworkLayer {
  std::string name, kind, shape;             ///< shape: of the first output, per sample; empty: not known
  std::vector<int> inputs;                   ///< layers; -1 - i: the input i of the network
  int shared_with = -1;                      ///< whose variables it uses; -1: its own
  bool fused = false;                        ///< into the layer before it
  bool is_entry = false;                     ///< the layer of all inputs: others read NetworkView::inputs
  std::int64_t parameters = -1, frozen = 0;  ///< -1: not known
  double flops = kUnknown;                   ///< of a forward pass, per sample
  double forward_ms = kUnknown, backward_ms = kUnknown;  ///< per step, all microshards of all ranks
};

struct NetworkHead {
  std::string name;
  int layer = -1;
};

struct NetworkInput {
  std::string name, shape;  ///< shape: per sample; empty: not known
};

struct NetworkView {
  std::vector<NetworkLayer> layers;  ///< in topological order; empty: see problem
  std::vector<NetworkHead> heads;
  std::vector<NetworkInput> inputs;  ///< empty: one, whose shape is not known
  std::int64_t parameters = -1;
  double flops = kUnknown;
  std::string problem;   ///< what is missing of it, and why; empty: nothing
  std::string measured;  ///< where the times come from; empty: nowhere
};

NetworkView network_view(const OpenedRun& opened, const std::string& run_dir);

/// Sets the times of layers from the newest trace of the hook `profile`, if there is one.
void add_profile(NetworkView& network, const std::string& run_dir);

/// An SVG with a box per layer; relu, batch_norm and the like stand in the box of the layer before them.
std::string network_diagram(const NetworkView& network);

}  // namespace lockstep::report
