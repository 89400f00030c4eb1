// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the boxes and lines of a diagram of a network lie, in pixels: a row per box along the longest path
// from the inputs, a column per branch. A connection that no box blocks goes down in the column of its
// target; another goes around the boxes, in a lane on the right. Each connection is drawn once, and no two
// lines lie on each other: lines of different boxes take different tracks between two rows.
#pragma once

#include <string>
#include <vector>

#include "view/report/network_view.h"

namespace lockstep::report {

struct DiagramBox {
  std::string title, kind, more, shape;  ///< more: the layers that stand in the box of the one before them
  std::string style = {};                ///< "end": an input or a loss; "shared"
  std::vector<std::size_t> inputs = {};  ///< boxes, each once
  int row = 0, column = 0;
  double x = 0, y = 0;  ///< the upper left corner
};

struct DiagramPoint {
  double x, y;
};

/// A connection. The part that it has in common with another line of the same box belongs to one of them.
struct DiagramLine {
  std::size_t from, to;
  std::vector<DiagramPoint> points;  ///< joined by horizontal and vertical lines, down to the box `to`
  bool is_skip;                      ///< goes around other boxes
};

struct DiagramLayout {
  static constexpr double kBoxWidth = 230, kBoxHeight = 40;
  std::vector<DiagramBox> boxes;
  std::vector<DiagramLine> lines;
  double width = 0, height = 0;
};

/// The boxes: relu, batch_norm and the like stand in the box of the layer before them.
DiagramLayout network_layout(const NetworkView& network);

}  // namespace lockstep::report
