// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "emulated_attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>

#include "core/error.h"
#include "core/half.h"
#include "kernels/chosen_algorithms_cuda.h"
#include "kernels/cuda_launch.h"

namespace lockstep {

namespace {

using Extents = std::array<std::int64_t, 4>;

std::int64_t count(const Extents& e) { return e[0] * e[1] * e[2] * e[3]; }

template <typename Body>
void for_each(const Extents& extents, const Body& body) {
  Extents i{};
  for (i[0] = 0; i[0] < extents[0]; ++i[0])
    for (i[1] = 0; i[1] < extents[1]; ++i[1])
      for (i[2] = 0; i[2] < extents[2]; ++i[2])
        for (i[3] = 0; i[3] < extents[3]; ++i[3]) body(i);
}

/// A tensor's numbers by their place in its extents.
struct Numbers {
  Extents extents{};
  std::vector<double> all;
  explicit Numbers(const Extents& e) : extents(e), all(static_cast<std::size_t>(count(e))) {}
  /// Where an extent is 1, all places of that axis are the one.
  double& at(const Extents& i) {
    std::int64_t place = 0;
    for (std::size_t axis = 0; axis < 4; ++axis)
      place = place * extents[axis] + (extents[axis] == 1 ? 0 : i[axis]);
    return all.at(static_cast<std::size_t>(place));
  }
};

std::int64_t offset(const GraphTensor& t, const Extents& i) {
  return i[0] * t.strides[0] + i[1] * t.strides[1] + i[2] * t.strides[2] + i[3] * t.strides[3];
}

template <typename Body>
void with_stored_type(const std::string& type, const Body& body) {
  if (type == "BFLOAT16") return body(BFloat16{});
  if (type == "HALF") return body(Float16{});
  LOCKSTEP_CHECK(type == "FLOAT", "numbers of type {} in memory", type);
  body(float{});
}

/// Computes a graph once.
class Execution {
 public:
  Execution(const AttentionFacts& facts, const AttentionExecution& operands)
      : facts_(facts), operands_(operands) {
    for (const GraphTensor& tensor : facts.tensors) tensors_[tensor.id] = &tensor;
  }

  void run() {
    std::vector<const GraphNode*> waiting;
    for (const GraphNode& node : facts_.nodes) waiting.push_back(&node);
    while (!waiting.empty()) {
      const auto ready = std::ranges::find_if(waiting, [&](const GraphNode* node) {
        return is_ready(node->a) && is_ready(node->b) && is_ready(node->t);
      });
      LOCKSTEP_CHECK(ready != waiting.end(), "a graph whose operations wait for each other");
      compute(**ready);
      waiting.erase(ready);
    }
  }

 private:
  bool is_ready(std::int64_t id) const {
    if (id == 0 || values_.contains(id) || operands_.scalars.contains(id)) return true;
    return !tensors_.at(id)->is_virtual &&
           !std::ranges::any_of(facts_.nodes, [&](const GraphNode& node) { return node.to == id; });
  }

  Numbers& value(std::int64_t id) {
    const auto found = values_.find(id);
    if (found != values_.end()) return found->second;
    const GraphTensor& tensor = *tensors_.at(id);
    Numbers& numbers = values_.emplace(id, Numbers(tensor.extents)).first->second;
    if (const auto scalar = operands_.scalars.find(id); scalar != operands_.scalars.end()) {
      numbers.all = {scalar->second};
      return numbers;
    }
    with_stored_type(tensor.type, [&]<typename T>(T) {
      const T* from = static_cast<const T*>(operands_.memory.at(id));
      for_each(tensor.extents, [&](const Extents& i) {
        numbers.at(i) = static_cast<double>(to_float(from[offset(tensor, i)]));
      });
    });
    return numbers;
  }

  /// Rounds the result to its type and writes it to memory, if it lies there.
  void keep(std::int64_t id, Numbers numbers) {
    const GraphTensor& tensor = *tensors_.at(id);
    if (tensor.type == "BFLOAT16" || tensor.type == "HALF")
      with_stored_type(tensor.type, [&]<typename T>(T) {
        for (double& number : numbers.all)
          number = static_cast<double>(to_float(from_float<T>(static_cast<float>(number))));
      });
    if (!tensor.is_virtual)
      with_stored_type(tensor.type, [&]<typename T>(T) {
        T* to = static_cast<T*>(operands_.memory.at(id));
        for_each(tensor.extents, [&](const Extents& i) {
          to[offset(tensor, i)] = from_float<T>(static_cast<float>(numbers.at(i)));
        });
      });
    values_.emplace(id, std::move(numbers));
  }

  void compute(const GraphNode& node) {
    Numbers result(tensors_.at(node.to)->extents);
    if (node.kind == "MATMUL")
      multiply(value(node.a), value(node.b), result);
    else if (node.kind == "RESHAPE")
      view(node, result);
    else if (node.kind == "REDUCE_TENSOR_MAX" || node.kind == "REDUCE_TENSOR_ADD")
      reduce(node.kind == "REDUCE_TENSOR_MAX", value(node.a), result);
    else
      for_each(result.extents, [&](const Extents& i) { result.at(i) = pointwise(node, i); });
    keep(node.to, std::move(result));
  }

  static void multiply(Numbers& a, Numbers& b, Numbers& c) {
    for_each(c.extents, [&](const Extents& i) {
      double sum = 0;
      for (std::int64_t k = 0; k < a.extents[3]; ++k)
        sum += a.at({i[0], i[1], i[2], k}) * b.at({i[0], i[1], k, i[3]});
      c.at(i) = sum;
    });
  }
  static void reduce(bool max, Numbers& x, Numbers& y) {
    std::ranges::fill(y.all, max ? -INFINITY : 0.0);
    for_each(x.extents, [&](const Extents& i) {
      double& to = y.at(i);
      to = max ? std::max(to, x.at(i)) : to + x.at(i);
    });
  }
  /// The same places of memory by other strides.
  void view(const GraphNode& node, Numbers& result) {
    const GraphTensor &from = *tensors_.at(node.a), &to = *tensors_.at(node.to);
    Numbers& x = value(node.a);
    std::map<std::int64_t, double> memory;
    for_each(from.extents, [&](const Extents& i) { memory[offset(from, i)] = x.at(i); });
    for_each(to.extents, [&](const Extents& i) { result.at(i) = memory.at(offset(to, i)); });
  }
  double pointwise(const GraphNode& node, const Extents& i) {
    if (node.kind == "GEN_INDEX") return static_cast<double>(i.at(static_cast<std::size_t>(node.axis)));
    const double x = value(node.a).at(i);
    if (node.kind == "EXP") return std::exp(x);
    if (node.kind == "LOG") return std::log(x);
    const double b = value(node.b).at(i);
    if (node.kind == "BINARY_SELECT") return value(node.t).at(i) != 0.0 ? x : b;
    if (node.kind == "CMP_GE") return x >= b ? 1.0 : 0.0;
    if (node.kind == "MUL") return x * b;
    if (node.kind == "SUB") return x - b;
    if (node.kind == "ADD") return x + b;
    LOCKSTEP_CHECK(node.kind == "DIV", "an operation {}", node.kind);
    return x / b;
  }

  const AttentionFacts& facts_;
  const AttentionExecution& operands_;
  std::map<std::int64_t, const GraphTensor*> tensors_;
  std::map<std::int64_t, Numbers> values_;
};

std::mutex mutex;
std::vector<PlannedAttention>& planned() {
  static std::vector<PlannedAttention> all;
  return all;
}

class EmulatedAttention final : public cuda::AttentionPlan {
 public:
  explicit EmulatedAttention(const cuda::AttentionPlanSpec& spec)
      : spec_(spec), facts_(plan_on_described_gpu(spec)) {}

  const AttentionFacts& facts() const { return facts_; }
  std::size_t workspace_bytes() const override { return facts_.workspace_bytes; }

  void run(cudaStream_t stream, const cuda::AttentionOperands& operands, void* workspace) const override {
    AttentionExecution execution = execution_of(spec_, operands);
    for (const auto& [id, address] : execution.memory)
      LOCKSTEP_CHECK(address != nullptr && reinterpret_cast<std::uintptr_t>(address) % 16 == 0,
                     "operand {} is missing or not aligned", id);
    cuda::check(emulation::enqueue(stream,
                                   [this, execution = std::move(execution), workspace] {
                                     std::memset(workspace, 0xFF, facts_.workspace_bytes);
                                     Execution(facts_, execution).run();
                                     std::memset(workspace, 0xFF, facts_.workspace_bytes);
                                   }),
                "an emulated plan of attention");
  }

 private:
  cuda::AttentionPlanSpec spec_;
  AttentionFacts facts_;
};

}  // namespace

std::vector<PlannedAttention> planned_attentions() {
  const std::lock_guard lock(mutex);
  return planned();
}

namespace cuda {

std::shared_ptr<const AttentionPlan> attention_plan_for(const AttentionPlanSpec& spec) {
  static std::map<AttentionPlanSpec, std::shared_ptr<const EmulatedAttention>> plans;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const EmulatedAttention>& plan = plans[spec];
  if (!plan) {
    plan = std::make_shared<EmulatedAttention>(spec);
    planned().push_back({spec, plan->facts()});
  }
  note_algorithm(spec.describe(), fmt::format("cuDNN engine {}", plan->facts().engine));
  return plan;
}

}  // namespace cuda

}  // namespace lockstep
