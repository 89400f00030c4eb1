// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A channel router (A. Hashimoto and J. Stevens, "Wire routing by optimizing channel assignment within large
// apertures", 1971): the horizontal parts of lines between two rows get the first track that is free.
#include "view/report/network_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace lockstep::report {

namespace {

constexpr double kBox = DiagramLayout::kBoxWidth, kHigh = DiagramLayout::kBoxHeight;
constexpr double kMargin = 10, kGapX = 34, kGapY = 20, kTrack = 7, kFirstTrack = 9;
constexpr double kFirstLane = 12, kLane = 10, kPort = 14, kWidestPort = kBox / 2 - 30,
                 kLanePort = kBox / 2 - 20, kArrow = 2, kApart = 6;

/// What a person does not think of as a layer of its own when it has one input, which nobody else reads.
bool joins(const NetworkLayer& layer) {
  static const std::set<std::string, std::less<>> kSmall{
      "relu",     "batch_norm", "dropout",    "flatten",       "tanh",   "sigmoid",
      "gelu",     "softmax",    "leaky_relu", "elu",           "swish",  "layer_norm",
      "rms_norm", "drop_path",  "group_norm", "instance_norm", "reshape"};
  return layer.fused || kSmall.contains(layer.kind);
}

std::vector<DiagramBox> boxes_of(const NetworkView& network) {
  std::vector<DiagramBox> boxes;
  for (const NetworkInput& input : network.inputs)
    boxes.push_back({.title = input.name, .kind = "", .more = "", .shape = input.shape, .style = "end"});
  if (boxes.empty())
    boxes.push_back({.title = "features", .kind = "", .more = "", .shape = "", .style = "end"});
  std::vector<std::size_t> box_of(network.layers.size());
  const auto source = [&](int input) {
    return input < 0 ? std::min(static_cast<std::size_t>(-1 - input), boxes.size() - 1)
                     : box_of[static_cast<std::size_t>(input)];
  };
  std::vector<int> readers(network.layers.size(), 0);
  for (const NetworkLayer& layer : network.layers)
    for (const int input : layer.inputs)
      if (input >= 0) ++readers[static_cast<std::size_t>(input)];
  for (const NetworkHead& head : network.heads)
    if (head.layer >= 0) ++readers[static_cast<std::size_t>(head.layer)];
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const NetworkLayer& layer = network.layers[i];
    if (layer.is_entry) continue;
    if (joins(layer) && layer.inputs.size() == 1 && layer.inputs[0] >= 0 && layer.shared_with < 0 &&
        readers[static_cast<std::size_t>(layer.inputs[0])] == 1) {
      box_of[i] = source(layer.inputs[0]);
      DiagramBox& box = boxes[box_of[i]];
      box.more += fmt::format("{}{}", box.more.empty() ? "" : ", ", layer.kind);
      if (!layer.shape.empty()) box.shape = layer.shape;
      continue;
    }
    DiagramBox box{.title = layer.name, .kind = layer.kind, .more = "", .shape = layer.shape};
    if (layer.shared_with >= 0) {
      box.style = "shared";
      box.more = "variables of " + network.layers[static_cast<std::size_t>(layer.shared_with)].name;
    }
    for (const int input : layer.inputs)
      if (const std::size_t from = source(input); std::ranges::find(box.inputs, from) == box.inputs.end())
        box.inputs.push_back(from);
    box_of[i] = boxes.size();
    boxes.push_back(std::move(box));
  }
  for (const NetworkHead& head : network.heads)
    if (head.layer >= 0)
      boxes.push_back({.title = head.name.empty() ? "loss" : head.name,
                       .kind = head.name.empty() ? "" : "head",
                       .more = "",
                       .shape = "",
                       .style = "end",
                       .inputs = {box_of[static_cast<std::size_t>(head.layer)]}});
  return boxes;
}

class Router {
 public:
  explicit Router(std::vector<DiagramBox> boxes) { layout_.boxes = std::move(boxes); }

  DiagramLayout route() {
    place();
    for (std::size_t to = 0; to < layout_.boxes.size(); ++to)
      for (const std::size_t from : layout_.boxes[to].inputs) edges_.push_back({.from = from, .to = to});
    for (Edge& edge : edges_) edge.way = way_of(edge);
    set_ports();
    set_lanes();
    set_tracks();
    set_heights();
    std::map<std::size_t, std::vector<Edge*>> by_source;
    for (Edge& edge : edges_) by_source[edge.from].push_back(&edge);
    for (const auto& [from, edges] : by_source) {
      draw_in_columns(from, edges);
      draw_in_lane(from, edges);
    }
    return std::move(layout_);
  }

 private:
  enum class Way { straight, bend, lane };
  struct Edge {
    std::size_t from, to;
    Way way = Way::straight;
    double port = 0;  ///< where it enters the target
  };
  /// A horizontal line between two rows, of one box.
  struct Track {
    double left, right, y = 0;
    std::size_t number = 0;
  };
  enum class Part { out, lane_out, lane_in };
  using TrackKey = std::pair<Part, std::size_t>;  ///< of the source, or for lane_in of the edge

  const DiagramBox& box(std::size_t i) const { return layout_.boxes[i]; }
  double left(std::size_t i) const { return kMargin + box(i).column * (kBox + kGapX); }
  double middle(std::size_t i) const { return left(i) + kBox / 2; }
  double bottom(std::size_t i) const { return box(i).y + kHigh; }
  bool is_taken(int row, int column) const { return taken_.contains({row, column}); }
  bool has_right_neighbour(std::size_t i) const {
    const auto next = taken_.upper_bound({box(i).row, box(i).column});
    return next != taken_.end() && next->first == box(i).row;
  }

  /// Rows by the longest path; a branch gets the first column that is free where it passes.
  void place() {
    for (DiagramBox& box : layout_.boxes) {
      box.row = box.column = 0;
      if (!box.inputs.empty()) box.column = layout_.boxes[box.inputs[0]].column;
      for (const std::size_t input : box.inputs) {
        box.row = std::max(box.row, layout_.boxes[input].row + 1);
        box.column = std::min(box.column, layout_.boxes[input].column);
      }
      while (is_taken(box.row, box.column)) ++box.column;
      taken_.insert({box.row, box.column});
      columns_ = std::max(columns_, box.column + 1);
      rows_ = std::max(rows_, box.row + 1);
    }
  }

  Way way_of(const Edge& edge) const {
    const DiagramBox &from = box(edge.from), &to = box(edge.to);
    for (int row = from.row + 1; row < to.row; ++row)
      if (is_taken(row, to.column)) return Way::lane;
    return from.column == to.column ? Way::straight : Way::bend;
  }

  /// A line from above enters a box in the middle; those from the left and from the right on their sides.
  void set_ports() {
    for (std::size_t to = 0; to < layout_.boxes.size(); ++to) {
      std::vector<Edge*> before, after;
      for (Edge& edge : edges_) {
        if (edge.to != to) continue;
        edge.port = middle(to);
        if (edge.way == Way::straight) continue;
        const bool from_left = edge.way == Way::bend && box(edge.from).column < box(to).column;
        (from_left ? before : after).push_back(&edge);
      }
      // A line that is alone comes in the middle, if no other one leaves a box there.
      const Edge* const only = before.empty() ? after.empty() ? nullptr : after.front() : before.front();
      if (only != nullptr && box(to).inputs.size() == 1 &&
          !is_taken(only->way == Way::lane ? box(to).row - 1 : box(only->from).row, box(to).column))
        continue;
      const auto spread = [&](const std::vector<Edge*>& side, double sign) {
        const double step =
            std::min(kPort, kWidestPort / static_cast<double>(std::max<std::size_t>(1, side.size())));
        for (std::size_t i = 0; i < side.size(); ++i)
          side[i]->port = middle(to) + sign * step * static_cast<double>(i + 1);
      };
      spread(before, -1);
      spread(after, 1);
    }
  }

  /// The lines of a box share a lane, from the box to its last target.
  void set_lanes() {
    std::vector<std::vector<std::pair<int, int>>> used;
    for (const Edge& edge : edges_) {
      if (edge.way != Way::lane || lane_of_.contains(edge.from)) continue;
      const int first = box(edge.from).row;
      int last = first;
      for (const Edge& other : edges_)
        if (other.from == edge.from && other.way == Way::lane) last = std::max(last, box(other.to).row);
      const auto crosses = [&](const std::vector<std::pair<int, int>>& lane) {
        return std::ranges::any_of(lane,
                                   [&](const auto& one) { return one.first < last && first < one.second; });
      };
      std::size_t lane = 0;
      while (lane < used.size() && crosses(used[lane])) ++lane;
      if (lane == used.size()) used.emplace_back();
      used[lane].emplace_back(first, last);
      lane_of_[edge.from] = edge_x() + kFirstLane + kLane * static_cast<double>(lane);
    }
    layout_.width =
        (used.empty() ? edge_x() : edge_x() + kFirstLane + kLane * static_cast<double>(used.size() - 1)) +
        kMargin;
  }

  void set_tracks() {
    const auto add = [&](int gap, Part part, std::size_t key, double from, double to) {
      const auto [at, is_new] =
          tracks_[gap].try_emplace({part, key}, Track{std::min(from, to), std::max(from, to)});
      at->second.left = std::min({at->second.left, from, to});
      at->second.right = std::max({at->second.right, from, to});
    };
    for (std::size_t i = 0; i < edges_.size(); ++i) {
      const Edge& edge = edges_[i];
      if (edge.way == Way::bend) add(box(edge.from).row, Part::out, edge.from, middle(edge.from), edge.port);
      if (edge.way != Way::lane) continue;
      if (has_right_neighbour(edge.from))
        add(box(edge.from).row, Part::lane_out, edge.from, middle(edge.from) + kLanePort,
            lane_of_[edge.from]);
      add(box(edge.to).row - 1, Part::lane_in, i, edge.port, lane_of_[edge.from]);
    }
    // In the order of their parts, so that a line into a box is below those out of the boxes above.
    for (auto& [gap, tracks] : tracks_) {
      std::vector<const Track*> before;
      std::size_t most = 0;
      for (auto& keyed : tracks) {
        Track& track = keyed.second;
        while (std::ranges::any_of(before, [&](const Track* other) {
          return other->number == track.number && other->left < track.right + kApart &&
                 track.left < other->right + kApart;
        }))
          ++track.number;
        most = std::max(most, track.number);
        before.push_back(&track);
      }
      gap_height_[gap] = kGapY + kTrack * static_cast<double>(most);
    }
  }

  void set_heights() {
    std::vector<double> top(static_cast<std::size_t>(rows_));
    double y = kMargin;
    for (int row = 0; row < rows_; ++row) {
      top[static_cast<std::size_t>(row)] = y;
      const auto gap = gap_height_.find(row);
      for (auto& [key, track] : tracks_[row])
        track.y = y + kHigh + kFirstTrack + kTrack * static_cast<double>(track.number);
      y += kHigh + (row + 1 == rows_ ? 0 : gap == gap_height_.end() ? kGapY : gap->second);
    }
    for (std::size_t i = 0; i < layout_.boxes.size(); ++i) {
      layout_.boxes[i].x = left(i);
      layout_.boxes[i].y = top[static_cast<std::size_t>(box(i).row)];
    }
    layout_.height = y + kMargin;
  }

  double track_y(int gap, Part part, std::size_t key) { return tracks_[gap].at({part, key}).y; }
  double end_of(const Edge& edge) const { return box(edge.to).y - kArrow; }
  void add_line(const Edge& edge, std::vector<DiagramPoint> points) {
    layout_.lines.push_back({edge.from, edge.to, std::move(points), edge.way == Way::lane});
  }

  /// The lines that go down at once, and those that turn to another column first.
  void draw_in_columns(std::size_t from, const std::vector<Edge*>& edges) {
    const double x = middle(from);
    bool has_stem = false;
    for (const Edge* edge : edges)
      if (edge->way == Way::straight) {
        add_line(*edge, {{x, bottom(from)}, {x, end_of(*edge)}});
        has_stem = true;
      }
    for (const double sign : {-1.0, 1.0}) {
      std::vector<const Edge*> side;
      for (const Edge* edge : edges)
        if (edge->way == Way::bend && (edge->port - x) * sign > 0) side.push_back(edge);
      std::ranges::sort(side, {}, [&](const Edge* edge) { return (edge->port - x) * sign; });
      double begin = x;
      for (const Edge* edge : side) {
        const double turn = track_y(box(from).row, Part::out, from);
        std::vector<DiagramPoint> points;
        if (!has_stem) points.push_back({x, bottom(from)});
        points.insert(points.end(), {{begin, turn}, {edge->port, turn}, {edge->port, end_of(*edge)}});
        add_line(*edge, std::move(points));
        begin = edge->port;
        has_stem = true;
      }
    }
  }

  /// The lines around other boxes: from the side of the box, or from below where another one is beside it.
  void draw_in_lane(std::size_t from, const std::vector<Edge*>& edges) {
    std::vector<const Edge*> all;
    for (const Edge* edge : edges)
      if (edge->way == Way::lane) all.push_back(edge);
    if (all.empty()) return;
    const auto enters = [&](const Edge* edge) {
      return track_y(box(edge->to).row - 1, Part::lane_in, static_cast<std::size_t>(edge - edges_.data()));
    };
    std::ranges::sort(all, {}, enters);
    const double lane = lane_of_[from];
    std::vector<DiagramPoint> points;
    if (has_right_neighbour(from)) {
      const double x = middle(from) + kLanePort, y = track_y(box(from).row, Part::lane_out, from);
      points = {{x, bottom(from)}, {x, y}, {lane, y}};
    } else {
      points = {{left(from) + kBox, box(from).y + kHigh / 2}, {lane, box(from).y + kHigh / 2}};
    }
    for (const Edge* edge : all) {
      const double y = enters(edge);
      points.insert(points.end(), {{lane, y}, {edge->port, y}, {edge->port, end_of(*edge)}});
      add_line(*edge, std::move(points));
      points = {{lane, y}};
    }
  }

  double edge_x() const { return kMargin + columns_ * (kBox + kGapX) - kGapX; }

  DiagramLayout layout_;
  std::vector<Edge> edges_;
  std::set<std::pair<int, int>> taken_;
  int rows_ = 0, columns_ = 0;
  std::map<std::size_t, double> lane_of_;
  std::map<int, std::map<TrackKey, Track>> tracks_;
  std::map<int, double> gap_height_;
};

}  // namespace

DiagramLayout network_layout(const NetworkView& network) { return Router(boxes_of(network)).route(); }

}  // namespace lockstep::report
