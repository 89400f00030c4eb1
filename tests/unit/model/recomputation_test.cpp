// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Recomputation: which operations are called once more, and a replay of a step in the arena of its plan, in
// which every call finds what it reads.
#include "model/recomputation.h"

#include <map>
#include <set>

#include "model/memory_plan.h"
#include "model_testing.h"
#include "planned_nets.h"

namespace lockstep {
namespace {

constexpr std::int64_t kSamples = 5;

constexpr const char* kSequence = R"(
- reshape: {shape: [16, 12]}
- dense: {name: x, units: 8}
- layer_norm
- attention: {units: 8, heads: 2, causal: true}
- drop_path: {rate: 0.2}
- add: {name: y, inputs: [x, drop_path1]}
- layer_norm
- dense: {units: 16}
- gelu
- dense: {units: 8}
- dropout: {rate: 0.1}
- add: {name: z, inputs: [y, dropout1]}
- lstm: {units: 6}
- gru: {units: 6, reset_after: true}
- split: {name: parts, axis: 1, parts: 2}
- multiply: {inputs: ["parts:0", "parts:1"]}
- last_step
- dense: {units: 3}
)";
constexpr const char* kNets[] = {kResNet, kBranches, kSequence};

class PreparedNet {
 public:
  explicit PreparedNet(const std::string& layers, Recompute recompute = Recompute::none,
                       const Shape& features = {8, 8, 3})
      : graph_(graph_from(layers, features)) {
    graph_.finish(variables_);
    graph_.recompute(recompute);
    calls = graph_.prepare({.kernels = cpu_kernels(),
                            .device = cpu_device(),
                            .lanes = 1,
                            .training = true,
                            .sample_counts = std::span(&kSamples, 1),
                            .wants_input_gradient = {}});
  }
  /// The names of the layers that are called once more.
  std::set<std::string> recomputed() const {
    std::set<std::string> names;
    for (const Graph::Operation& operation : calls.operations)
      if (operation.recomputed) names.insert(operation.layer->name());
    return names;
  }

 private:
  Graph graph_;
  VariableStore variables_;

 public:
  Graph::Calls calls;
};

/// Runs the calls of a step on names: an address holds the name of what was last written to it. A write
/// removes everything that it overlaps.
class Replay {
 public:
  Replay(const Graph::Calls& calls, const MemoryPlan& plan) : calls_(calls), plan_(plan) {
    write(plan.value(0), bytes(0), "value 0");
    for (int i = 0; i < size(); ++i) forward(i, false);
    for (std::size_t head = 0; head < calls.outputs.size(); ++head) {
      const int v = calls.outputs[head];
      read(plan.value(v), value_name(v), "the loss");
      contribute(plan.loss_gradient(static_cast<int>(head)), v, "the loss", false);
    }
    const std::vector<std::vector<int>> before = recomputations(calls);
    for (int i = size() - 1; i >= 0; --i) {
      for (const int again : before[static_cast<std::size_t>(i)]) forward(again, true);
      if (at(i).backward) backward(i);
    }
  }
  const std::string& problem() const { return problem_; }
  int reads() const { return reads_; }

 private:
  int size() const { return static_cast<int>(calls_.operations.size()); }
  const Graph::Operation& at(int i) const { return calls_.operations[static_cast<std::size_t>(i)]; }
  std::size_t bytes(int v) const {
    return static_cast<std::size_t>(calls_.values[static_cast<std::size_t>(v)].shape.num_elements() *
                                    kSamples) *
           sizeof(float);
  }
  static std::string value_name(int v) { return fmt::format("value {}", v); }

  void write(std::size_t offset, std::size_t size, const std::string& name, bool alias = false) {
    if (offset == MemoryPlan::kNone) return fail("no place for " + name);
    if (offset + size > plan_.total_bytes()) return fail(name + " is outside the arena");
    if (alias && memory_.contains(offset)) {
      memory_[offset].names.insert(name);
      return;
    }
    std::erase_if(memory_, [&](const auto& held) {
      return held.first < offset + size && offset < held.first + held.second.bytes;
    });
    memory_[offset] = {size, {name}};
  }
  void read(std::size_t offset, const std::string& name, const std::string& reader) {
    ++reads_;
    const auto found = memory_.find(offset);
    if (found == memory_.end() || !found->second.names.contains(name))
      fail(fmt::format("{} does not find {}", reader, name));
  }
  void fail(const std::string& what) {
    if (problem_.empty()) problem_ = what;
  }

  std::size_t place(int i, int v, bool after_loss) const {
    return after_loss && calls_.reads_recomputed(at(i), v) ? plan_.recomputed_value(v) : plan_.value(v);
  }
  std::size_t saved(int i, bool after_loss) const {
    return after_loss && at(i).recomputed ? plan_.recomputed_saved(i) : plan_.saved(i);
  }
  void forward(int i, bool again) {
    const std::string reader =
        fmt::format("{} of {}", again ? "the second call" : "forward", at(i).layer->name());
    for (const int v : at(i).inputs) read(place(i, v, again), value_name(v), reader);
    for (const int v : at(i).outputs) write(place(i, v, again), bytes(v), value_name(v));
    if (at(i).memory.saved_bytes > 0)
      write(saved(i, again), at(i).memory.saved_bytes, fmt::format("saved {}", i));
  }
  static std::string gradient_name(int v) { return fmt::format("gradient {}", v); }
  void contribute(const MemoryPlan::Contribution& contribution, int v, const std::string& writer,
                  bool alias) {
    if (contribution.offset == MemoryPlan::kNone) return;
    if (contribution.accumulate) {
      write(contribution.offset, bytes(v), "a term");
      read(plan_.value_gradient(v), gradient_name(v), writer);
      write(plan_.value_gradient(v), bytes(v), gradient_name(v));
    } else {
      write(contribution.offset, bytes(v), gradient_name(v), alias);
    }
  }
  void backward(int i) {
    const std::string reader = "backward of " + at(i).layer->name();
    for (const int v : at(i).outputs) {
      if (plan_.value_gradient(v) != MemoryPlan::kNone)
        read(plan_.value_gradient(v), gradient_name(v), reader);
      if (plan_.second_gradient(v) != MemoryPlan::kNone)
        read(plan_.second_gradient(v), gradient_name(v), reader);
      if (at(i).traits.backward_reads_output) read(place(i, v, true), value_name(v), reader);
    }
    if (at(i).traits.backward_reads_input)
      for (const int v : at(i).inputs) read(place(i, v, true), value_name(v), reader);
    if (at(i).memory.saved_bytes > 0) read(saved(i, true), fmt::format("saved {}", i), reader);
    if (at(i).owner >= 0)
      write(plan_.shared_gradients(i), static_cast<std::size_t>(at(i).shared_elements) * sizeof(float),
            fmt::format("shared {}", i));
    for (int j = i + 1; j < size(); ++j)
      if (at(j).owner == i && at(j).backward)
        read(plan_.shared_gradients(j), fmt::format("shared {}", j), reader);
    const bool adds = at(i).traits.fusible == Fusible::addition;
    for (std::size_t input = 0; input < at(i).inputs.size(); ++input) {
      const MemoryPlan::Contribution& to = plan_.contribution(i, static_cast<int>(input));
      const bool alias = adds && to.offset == plan_.value_gradient(at(i).outputs.front());
      contribute(to, at(i).inputs[input], reader, alias);
    }
  }

  struct Held {
    std::size_t bytes;
    std::set<std::string> names;
  };
  const Graph::Calls& calls_;
  const MemoryPlan& plan_;
  std::map<std::size_t, Held> memory_;  ///< by offset
  std::string problem_;
  int reads_ = 0;
};

std::string problem_of(Graph::Calls& calls) {
  find_recomputed(calls);
  return Replay(calls, MemoryPlan(calls, true, kSamples)).problem();
}

TEST(Recomputation, EveryCallFindsWhatItReads) {
  for (const char* layers : kNets) {
    PreparedNet net(layers);
    EXPECT_GT(Replay(net.calls, MemoryPlan(net.calls, true, kSamples)).reads(), 45);
    EXPECT_EQ(problem_of(net.calls), "");
    // Segments of 1 to all operations, then any: they may be interleaved and left out.
    const int count = static_cast<int>(net.calls.operations.size());
    for (int length = 1; length <= count; ++length) {
      for (int i = 0; i < count; ++i) net.calls.operations[static_cast<std::size_t>(i)].segment = i / length;
      EXPECT_EQ(problem_of(net.calls), "") << layers << " segments of " << length;
    }
    int recomputed = 0;
    for (std::uint32_t trial = 0; trial < 300; ++trial) {
      for (int i = 0; i < count; ++i)
        net.calls.operations[static_cast<std::size_t>(i)].segment =
            static_cast<int>(philox_words(3, trial, 0, 0, static_cast<std::uint32_t>(i))[0] %
                             (2 + trial % 4)) -
            1;
      EXPECT_EQ(problem_of(net.calls), "") << layers << " trial " << trial;
      recomputed += static_cast<int>(net.recomputed().size());
    }
    EXPECT_GT(recomputed, 300);
  }
}

TEST(Recomputation, WhatAnOperationOutsideKeepsOrNobodyNeedsIsNotComputedOnceMore) {
  const PreparedNet net(R"(
- dense: {name: x, units: 12}
- layer_norm: {name: norm, recompute: block}
- dense: {name: wide, units: 24, recompute: block}
- gelu: {name: gelu, recompute: block}
- dense: {name: narrow, units: 12, recompute: block}
- add: {name: y, inputs: [x, narrow], recompute: block}
- dense: {units: 5}
)",
                        Recompute::marked, Shape{12});
  EXPECT_EQ(net.recomputed(), (std::set<std::string>{"norm", "wide", "gelu"}));
  // A reader outside the segment that needs its input after the loss keeps it.
  const PreparedNet kept(R"(
- dense: {name: a, units: 12, recompute: part}
- softmax: {name: b, recompute: part}
- dense: {name: c, units: 12, recompute: part}
- dense: {name: d, units: 12, inputs: [b]}
- add: {inputs: [c, d]}
- dense: {units: 5}
)",
                         Recompute::marked, Shape{12});
  EXPECT_EQ(kept.recomputed(), std::set<std::string>{});
}

std::string chain(int blocks) {
  std::string layers = "[dense: {units: 64}";
  for (int i = 0; i < blocks; ++i)
    layers += fmt::format(
        ", layer_norm: {{recompute: s{0}}}, dense: {{units: 256, recompute: s{0}}}, gelu: {{recompute: "
        "s{0}}}, "
        "dense: {{units: 64, recompute: s{0}}}",
        i);
  return layers + ", dense: {units: 3}]";
}

TEST(Recomputation, SavesMemoryAndSaysWhatItCosts) {
  const PreparedNet marked(chain(12), Recompute::marked, Shape{64});
  const RecomputationCost cost = recomputation_cost(marked.calls, kSamples);
  EXPECT_EQ(cost.segments, 12);
  EXPECT_LT(cost.bytes * 3, cost.bytes_without);
  EXPECT_EQ(
      cost.bytes_without,
      MemoryPlan(PreparedNet(chain(12), Recompute::none, Shape{64}).calls, true, kSamples).total_bytes());
  // Of two products in a block, one.
  EXPECT_GT(cost.share, 0.4);
  EXPECT_LT(cost.share, 0.6);
  EXPECT_EQ(recomputation_text(Recompute::none, marked.calls, kSamples), "");
  EXPECT_NE(recomputation_text(Recompute::marked, marked.calls, kSamples).find("12 segments compute 4"),
            std::string::npos)
      << recomputation_text(Recompute::marked, marked.calls, kSamples);
}

TEST(Recomputation, ChoosesSegmentsThatNeedLessMemory) {
  for (const int blocks : {4, 12, 40}) {
    const PreparedNet chosen(chain(blocks), Recompute::automatic, Shape{64});
    const RecomputationCost cost = recomputation_cost(chosen.calls, kSamples);
    const PreparedNet marked(chain(blocks), Recompute::marked, Shape{64});
    EXPECT_GT(cost.segments, 1) << blocks;
    EXPECT_LE(cost.bytes, recomputation_cost(marked.calls, kSamples).bytes * 11 / 10) << blocks;
    EXPECT_LT(cost.share, 1);
    EXPECT_EQ(Replay(chosen.calls, MemoryPlan(chosen.calls, true, kSamples)).problem(), "");
  }
  for (const char* layers : kNets) {
    const PreparedNet chosen(layers, Recompute::automatic);
    EXPECT_EQ(Replay(chosen.calls, MemoryPlan(chosen.calls, true, kSamples)).problem(), "");
  }
  const PreparedNet single("[flatten, dense: {units: 3}]", Recompute::automatic);
  EXPECT_TRUE(single.recomputed().empty());
  EXPECT_NE(recomputation_text(Recompute::automatic, single.calls, kSamples), "");
}

TEST(Recomputation, IsOnlyInTraining) {
  Graph graph = graph_from(chain(2), Shape{64});
  VariableStore variables;
  graph.finish(variables);
  for (const Graph::Operation& operation : graph.calls(false).operations) EXPECT_EQ(operation.segment, -1);
}

}  // namespace
}  // namespace lockstep
