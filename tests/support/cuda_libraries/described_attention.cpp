// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "described_attention.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "described_device.h"
#include "kernels/cudnn_attention_plan_cuda.h"

namespace lockstep {

namespace {

/// `text` after `prefix`.
std::string without(const std::string& text, const std::string& prefix) {
  LOCKSTEP_CHECK(text.starts_with(prefix), "{} does not begin with {}", text, prefix);
  return text.substr(prefix.size());
}

GraphTensor tensor_of(const nlohmann::json& json) {
  return {std::stoll(json.at("name").get<std::string>()), without(json.at("dataType"), "CUDNN_DATA_"),
          json.at("dim"), json.at("stride"), json.at("isVirtual")};
}

GraphNode node_of(const nlohmann::json& json) {
  const auto id = [&](const char* name) {
    return json.contains(name) ? std::stoll(json.at(name).get<std::string>()) : 0LL;
  };
  const std::string operation = without(json.at("operation"), "CUDNN_BACKEND_OPERATION_");
  if (operation == "MATMUL_DESCRIPTOR") return {"MATMUL", id("matA"), id("matB"), 0, id("matC"), -1};
  if (operation == "RESHAPE_DESCRIPTOR") return {"RESHAPE", id("X"), 0, 0, id("Y"), -1};
  if (operation == "REDUCTION_DESCRIPTOR")
    return {without(json.at("reductionOp"), "CUDNN_"), id("X"), 0, 0, id("Y"), -1};
  LOCKSTEP_CHECK(operation == "POINTWISE_DESCRIPTOR", "an operation {}", json.dump());
  LOCKSTEP_CHECK(json.at("alpha1") == 1.0 && json.at("alpha2") == 1.0, "factors in {}", json.dump());
  return {without(json.at("pointwiseMode"), "CUDNN_POINTWISE_"),
          id("X"),
          id("B"),
          id("T"),
          id("Y"),
          json.value("axis", -1)};
}

}  // namespace

AttentionFacts plan_on_described_gpu(const cuda::AttentionPlanSpec& spec) {
  const std::string what = spec.describe();
  const cuda::FoundPlan found = find_attention_plan(spec, {.device = &described_device()}, what);
  AttentionFacts facts{engine_facts(found), {}, {}, {}, {}};
  const auto text =
      found.plan.get<char>(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 1 << 22);
  const auto json = nlohmann::json::parse(text.begin(), text.end());
  const auto& graph = json.at("operationGraph");
  facts.recognised = graph.at("finalizeMode");
  for (const auto& tensor : graph.at("tensors")) facts.tensors.push_back(tensor_of(tensor));
  for (const auto& node : graph.at("nodes")) facts.nodes.push_back(node_of(node));
  facts.kernel = json.at("engine").at("payload").at("kernels").at(0).at("kernelName");
  // cuDNN accepts a variant pack with the program's alignment.
  const auto address = [](int number) {
    return reinterpret_cast<char*>((std::uintptr_t{1} << 32) + static_cast<std::uintptr_t>(number) * 256);
  };
  const cuda::AttentionScalars scalars(spec);
  const cuda::AttentionOperands operands{address(1), address(2), address(3), address(4), address(5),
                                         address(6), address(7), address(8), address(9), address(10)};
  cuda::attention_variant_pack({spec, operands, scalars}, address(11), what);
  return facts;
}

AttentionExecution execution_of(const cuda::AttentionPlanSpec& spec,
                                const cuda::AttentionOperands& operands) {
  const cuda::AttentionScalars scalars(spec);
  const cuda::AttentionAddresses addresses(spec, operands, scalars);
  AttentionExecution made;
  for (std::size_t i = 0; i < addresses.ids.size(); ++i) {
    const auto id = static_cast<std::int64_t>(addresses.ids[i]);
    const void* at = addresses.at.at(i);
    if (at == &scalars.factor || at == &scalars.masked || at == &scalars.one)
      made.scalars[id] = static_cast<double>(*static_cast<const float*>(at));
    else
      made.memory[id] = const_cast<void*>(at);
  }
  return made;
}

}  // namespace lockstep
