// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "described_gpu.h"

#include "described_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/error.h"
#include "kernels/not_supported.h"

namespace lockstep {

namespace {

/// The device properties that cuDNN 9.19 requires, with the values of an H200 (compute capability 9.0).
constexpr std::string_view kH200 = R"({
  "deviceName": "NVIDIA H200", "cudaDeviceId": 0, "pciDeviceId": 0, "deviceVer": 900, "driverVer": 13000,
  "isTccDriver": 0, "supportCoopLaunch": 1, "multiProcessorCount": 132, "warpSize": 32,
  "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
  "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "maxCtasPerSM": 32,
  "regsPerBlock": 65536, "maxRegistersPerSM": 65536,
  "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024,
  "l2CacheSize": 52428800, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "totalGlobalMem": 150121545728
})";

}  // namespace

const cuda::Descriptor& described_device() {
  static const std::string what = "the description of an H200";
  static const cuda::Descriptor device = [] {
    cuda::Descriptor made(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, what);
    made.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, kH200.data(),
             static_cast<std::int64_t>(kH200.size()))
        .finalize();
    return made;
  }();
  return device;
}

namespace {

std::string name_of(cudnnBackendNumericalNote_t note) {
  switch (note) {
    case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
      return "tensor cores";
    case CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP:
      return "strict NaN";
    default:
      return fmt::format("note {}", static_cast<int>(note));
  }
}
std::string name_of(cudnnBackendBehaviorNote_t note) {
  switch (note) {
    case CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION:
      return "compiled at run time";
    case CUDNN_BEHAVIOR_NOTE_REQUIRES_FILTER_INT8x32_REORDER:
    case CUDNN_BEHAVIOR_NOTE_REQUIRES_BIAS_INT8x32_REORDER:
      return "reordered int8";
    default:
      return fmt::format("note {}", static_cast<int>(note));
  }
}
template <typename Note>
std::string names(const std::vector<Note>& notes) {
  std::string text;
  for (const Note note : notes) text += (text.empty() ? "" : ", ") + name_of(note);
  return text;
}

/// The last axes of three.
cuda::PlanSpec::Axes axes_of(const nlohmann::json& values, std::size_t first, cuda::PlanSpec::Axes all) {
  LOCKSTEP_CHECK(values.size() >= first && values.size() - first <= all.size(), "{} axes", values.size());
  std::copy(values.begin() + static_cast<std::ptrdiff_t>(first), values.end(),
            all.end() - static_cast<std::ptrdiff_t>(values.size() - first));
  return all;
}

PlannedOperand operand_of(const nlohmann::json& graph, const std::string& name) {
  for (const auto& tensor : graph.at("tensors")) {
    if (tensor.at("name") != name) continue;
    const auto& extents = tensor.at("dim");
    const auto& strides = tensor.at("stride");
    const std::string type = tensor.at("dataType");
    return {type == "CUDNN_DATA_FLOAT"  ? DType::f32
            : type == "CUDNN_DATA_HALF" ? DType::f16
                                        : DType::bf16,
            extents.at(0),
            extents.at(1),
            strides.at(0),
            strides.at(1),
            axes_of(extents, 2, {1, 1, 1}),
            axes_of(strides, 2, {0, 0, 0})};
  }
  LOCKSTEP_CHECK(false, "cuDNN has no operand {}", name);
}

/// The operation according to cuDNN's own description of the plan.
PlannedOperation operation_of(const cuda::FoundPlan& found) {
  const auto text =
      found.plan.get<char>(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 1 << 16);
  const auto graph = nlohmann::json::parse(text.begin(), text.end()).at("operationGraph");
  const auto& node = graph.at("nodes").at(0);
  LOCKSTEP_CHECK(node.at("mode") == "CUDNN_CROSS_CORRELATION" && node.at("mathPrec") == "CUDNN_DATA_FLOAT" &&
                     node.at("alpha") == 1.0 && node.at("beta") == 0.0,
                 "not a plain convolution: {}", node.dump());
  const auto operand = [&](std::int64_t id, const char* read, const char* written) {
    const std::string name = node.at(node.contains(read) ? read : written);
    LOCKSTEP_CHECK(name == std::to_string(id), "operand {} is called {}", id, name);
    return operand_of(graph, name);
  };
  using Pass = cuda::PlanSpec::Pass;
  return {node.contains("dX")   ? Pass::backward_data
          : node.contains("dW") ? Pass::backward_weights
                                : Pass::forward,
          operand(cuda::kPlanX, "X", "dX"),
          operand(cuda::kPlanKernel, "W", "dW"),
          operand(cuda::kPlanY, "Y", "dY"),
          axes_of(node.at(node.contains("pad") ? "pad" : "pad_lower"), 0, {0, 0, 0}),
          axes_of(node.at(node.contains("pad") ? "pad" : "pad_upper"), 0, {0, 0, 0}),
          axes_of(node.at("stride"), 0, {1, 1, 1}),
          axes_of(node.at("dilation"), 0, {1, 1, 1}),
          node.value("groupCount", std::int64_t{1})};
}

}  // namespace

EngineFacts engine_facts(const cuda::FoundPlan& found) {
  return {static_cast<std::size_t>(found.workspace_bytes), found.on_tensor_cores,
          found.engine.get<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1).at(0),
          names(found.engine.get<cudnnBackendNumericalNote_t>(
              CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT)),
          names(found.engine.get<cudnnBackendBehaviorNote_t>(
              CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT))};
}

namespace {
PlanFacts facts_of(const cuda::FoundPlan& found) { return {operation_of(found), engine_facts(found)}; }
}  // namespace

PlanFacts plan_on_described_gpu(const cuda::PlanSpec& spec, FunctionRef<bool(const PlanFacts&)> is_right) {
  const std::string what = spec.describe();
  const cuda::FoundPlan found =
      find_plan(spec, {.device = &described_device()}, what,
                [&](const cuda::FoundPlan& plan) { return is_right(facts_of(plan)); });
  // Operand addresses with the program's alignment.
  char* const memory = reinterpret_cast<char*>(std::uintptr_t{1} << 32);
  cuda::variant_pack(memory, memory + 256, memory + 512, memory + 1024, what);
  return facts_of(found);
}

std::vector<std::string> plan_names(const cuda::PlanSpec& spec) {
  const std::string what = spec.describe();
  std::vector<std::string> names;
  try {
    find_plan(spec, {.device = &described_device()}, what, [&](const cuda::FoundPlan& plan) {
      names.push_back(describe(plan));
      return false;
    });
  } catch (const NotSupported&) {  // the list is at its end
  }
  return names;
}

PlanFacts plan_on_described_gpu(const cuda::PlanSpec& spec) {
  return plan_on_described_gpu(spec, [](const PlanFacts&) { return true; });
}

}  // namespace lockstep
