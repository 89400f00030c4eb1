// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The memory plan is compared with a simulation of the calls: blocks that are alive at the same time do not
// overlap.
#include "model/memory_plan.h"

#include <map>
#include <tuple>

#include "model_testing.h"
#include "planned_nets.h"

namespace lockstep {
namespace {

struct Block {
  std::size_t offset = 0, bytes = 0;
  int first = 0, last = -1;
};

/// Every block with the times at which a call writes or reads it: forward of operation i at i, the loss at K,
/// backward of operation i at 2K - i.
class Simulation {
 public:
  Simulation(const Graph::Calls& calls, const MemoryPlan& plan, bool training, std::int64_t samples)
      : calls_(calls), plan_(plan), samples_(samples) {
    const int K = static_cast<int>(calls.operations.size());
    value(0, 0);
    for (int i = 0; i < K; ++i) {
      const Graph::Operation& operation = at(i);
      for (int input : operation.inputs) value(input, i);
      for (int output : operation.outputs) value(output, i);
      if (training) saved(i, i);
    }
    value(calls.outputs[0], K);
    if (!training) return;
    gradient(calls.outputs[0], K);
    for (int i = K - 1; i >= 0; --i) backward(i, 2 * K - i);
  }
  const std::map<std::tuple<std::string, int, int>, Block>& blocks() const { return blocks_; }

 private:
  const Graph::Operation& at(int i) const { return calls_.operations[static_cast<std::size_t>(i)]; }
  void touch(const std::string& kind, int a, int b, std::size_t offset, std::size_t bytes, int time) {
    ASSERT_NE(offset, MemoryPlan::kNone) << kind << " " << a << " " << b;
    auto [found, is_new] = blocks_.try_emplace({kind, a, b}, Block{offset, bytes, time, time});
    found->second.last = time;
    EXPECT_EQ(found->second.offset, offset);
    EXPECT_EQ(offset % 64, 0U);
    EXPECT_LE(offset + bytes, plan_.total_bytes());
  }
  std::size_t bytes(int value) const {
    return static_cast<std::size_t>(calls_.values[static_cast<std::size_t>(value)].shape.num_elements() *
                                    samples_) *
           sizeof(float);
  }
  void value(int v, int time) { touch("value", v, 0, plan_.value(v), bytes(v), time); }
  void gradient(int v, int time) {
    if (calls_.values[static_cast<std::size_t>(v)].wants_gradient)
      touch("gradient", v, 0, plan_.value_gradient(v), bytes(v), time);
  }
  void saved(int i, int time) {
    if (const std::size_t size = at(i).memory.saved_bytes; size > 0)
      touch("saved", i, 0, plan_.saved(i), size, time);
  }
  void backward(int i, int time) {
    const Graph::Operation& operation = at(i);
    if (!calls_.values[static_cast<std::size_t>(operation.outputs[0])].wants_gradient) return;
    for (int output : operation.outputs) {
      gradient(output, time);
      if (plan_.second_gradient(output) != MemoryPlan::kNone) {
        EXPECT_TRUE(operation.traits.takes_two_gradients);
        touch("second", output, 0, plan_.second_gradient(output), bytes(output), time);
      }
      if (operation.traits.backward_reads_output) value(output, time);
    }
    if (operation.traits.backward_reads_input)
      for (int input : operation.inputs) value(input, time);
    saved(i, time);
    for (std::size_t input = 0; input < operation.inputs.size(); ++input) {
      const int v = operation.inputs[input];
      const auto& contribution = plan_.contribution(i, static_cast<int>(input));
      EXPECT_EQ(contribution.offset != MemoryPlan::kNone,
                calls_.values[static_cast<std::size_t>(v)].wants_gradient);
      if (contribution.offset == MemoryPlan::kNone) continue;
      const bool is_first = !written_[v];
      written_[v] = true;
      if (is_first && v != calls_.outputs[0]) {
        EXPECT_EQ(contribution.offset, plan_.value_gradient(v));
        EXPECT_FALSE(contribution.accumulate);
        gradient(v, time);
      } else if (contribution.accumulate) {
        touch("contribution", i, static_cast<int>(input), contribution.offset, bytes(v), time);
        gradient(v, time);
      } else {
        EXPECT_EQ(contribution.offset, plan_.second_gradient(v));
        touch("second", v, 0, contribution.offset, bytes(v), time);
      }
    }
  }

  const Graph::Calls& calls_;
  const MemoryPlan& plan_;
  std::int64_t samples_;
  std::map<int, bool> written_;
  std::map<std::tuple<std::string, int, int>, Block> blocks_;
};

/// The gradients of the backward pass as texts, once as the plan places them and once each by itself.
class SymbolicBackward {
 public:
  SymbolicBackward(const Graph::Calls& calls, const MemoryPlan& plan) : calls_(calls), plan_(plan) {
    const int K = static_cast<int>(calls.operations.size());
    for (std::size_t head = 0; head < calls.outputs.size(); ++head) {
      const auto& contribution = plan.loss_gradient(static_cast<int>(head));
      placed_[contribution.offset] = fmt::format("loss{}", head);
      grow(calls.outputs[head], contribution, fmt::format("loss{}", head));
    }
    for (int i = K - 1; i >= 0; --i) backward(i);
  }
  int num_shared() const { return num_shared_; }

 private:
  void backward(int i) {
    const Graph::Operation& operation = calls_.operations[static_cast<std::size_t>(i)];
    if (!operation.backward) return;
    std::string dy, alone;
    for (const int output : operation.outputs) {
      dy += placed_[plan_.value_gradient(output)] + ";";
      alone += alone_[output] + ";";
    }
    EXPECT_EQ(dy, alone) << operation.layer->name();
    const bool adds = operation.traits.fusible == Fusible::addition;
    for (std::size_t input = 0; input < operation.inputs.size(); ++input) {
      const auto& contribution = plan_.contribution(i, static_cast<int>(input));
      if (contribution.offset == MemoryPlan::kNone) continue;
      if (contribution.offset == plan_.value_gradient(operation.outputs[0])) {
        EXPECT_TRUE(adds) << operation.layer->name();
        ++num_shared_;
      }
      placed_[contribution.offset] = adds ? dy : fmt::format("{}.{}({})", operation.layer->name(), input, dy);
    }
    if (operation.traits.overwrites_dy)
      for (const int output : operation.outputs) placed_[plan_.value_gradient(output)] = "changed";
    for (std::size_t input = 0; input < operation.inputs.size(); ++input)
      if (const auto& contribution = plan_.contribution(i, static_cast<int>(input));
          contribution.offset != MemoryPlan::kNone)
        grow(operation.inputs[input], contribution,
             adds ? alone : fmt::format("{}.{}({})", operation.layer->name(), input, alone));
  }
  void grow(int value, const MemoryPlan::Contribution& contribution, const std::string& term) {
    std::string& sum = alone_[value];
    if (contribution.accumulate) placed_[plan_.value_gradient(value)] += " + " + placed_[contribution.offset];
    if (sum.empty() || contribution.accumulate) sum += (sum.empty() ? "" : " + ") + term;
  }

  const Graph::Calls& calls_;
  const MemoryPlan& plan_;
  std::map<std::size_t, std::string> placed_;  ///< by offset
  std::map<int, std::string> alone_;           ///< by value
  int num_shared_ = 0;
};

Graph::Calls calls_of(Graph& graph, bool training, const std::int64_t& samples) {
  return graph.prepare({.kernels = cpu_kernels(),
                        .device = cpu_device(),
                        .lanes = 1,
                        .training = training,
                        .sample_counts = std::span(&samples, 1),
                        .wants_input_gradient = {}});
}

int num_shared_gradients(const char* yaml, Shape features) {
  Graph graph = graph_from(yaml, features);
  VariableStore variables;
  graph.finish(variables);
  const std::int64_t samples = 5;
  const Graph::Calls calls = calls_of(graph, true, samples);
  const MemoryPlan plan(calls, true, samples);
  return SymbolicBackward(calls, plan).num_shared();
}

TEST(MemoryPlan, TermsOfASumShareItsGradientWhereNothingChangesIt) {
  EXPECT_GT(num_shared_gradients(kBranches, Shape{8, 8, 4}), 2);
  (void)num_shared_gradients(kResNet, Shape{8, 8, 4});
  // As in a transformer: both terms of both sums.
  EXPECT_EQ(num_shared_gradients(R"(
- dense: {name: x, units: 4}
- layer_norm: {name: n1}
- dense: {name: f1, units: 4}
- add: {name: y, inputs: [x, f1]}
- layer_norm: {name: n2}
- dense: {name: f2, units: 4}
- add: {name: z, inputs: [y, f2]}
- flatten
- dense: {units: 3}
)",
                                 Shape{8, 4}),
            4);
  // f changes its own gradient, which x is still read from; y's would grow while x is read.
  EXPECT_EQ(num_shared_gradients(R"(
- dense: {name: x, units: 4}
- tanh: {name: t}
- dense: {name: f, units: 4}
- relu: {name: f_relu}
- add: {name: y, inputs: [t, f_relu]}
- flatten
- dense: {units: 3}
)",
                                 Shape{8, 4}),
            1);
}

void expect_apart(const char* yaml, bool training) {
  Graph graph = graph_from(yaml, Shape{8, 8, 3});
  VariableStore variables;
  graph.finish(variables);
  const std::int64_t samples = 5;
  const Graph::Calls calls = calls_of(graph, training, samples);
  const MemoryPlan plan(calls, training, samples);
  const Simulation simulation(calls, plan, training, samples);
  std::size_t sum = 0;
  for (const auto& [name, block] : simulation.blocks()) {
    sum += block.bytes;
    for (const auto& [other_name, other] : simulation.blocks()) {
      if (name >= other_name || block.last < other.first || other.last < block.first) continue;
      const bool gradients = std::get<0>(name) == "gradient" && std::get<0>(other_name) == "gradient";
      if (gradients && block.offset == other.offset) continue;  // a sum's: see below
      EXPECT_TRUE(block.offset + block.bytes <= other.offset || other.offset + other.bytes <= block.offset)
          << std::get<0>(name) << " " << std::get<1>(name) << " and " << std::get<0>(other_name) << " "
          << std::get<1>(other_name) << " overlap";
    }
  }
  EXPECT_GT(simulation.blocks().size(), calls.operations.size());
  // Blocks share memory: the total is far less than the sum of all blocks.
  EXPECT_LT(plan.total_bytes(), training ? sum * 3 / 4 : sum / 2);
}

TEST(MemoryPlan, LiveBlocksDoNotOverlap) {
  for (const char* yaml : {kResNet, kBranches})
    for (const bool training : {true, false}) expect_apart(yaml, training);
}

}  // namespace
}  // namespace lockstep
