// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cudnn_plan_cuda.h"

#include <algorithm>
#include <map>
#include <vector>

#include "core/error.h"
#include "kernels/not_supported.h"

namespace lockstep::cuda {
namespace {

constexpr std::int64_t kMaxEngines = 64;  ///< largest number of engines requested from a list

/// The last `count` axes.
std::vector<std::int64_t> axes(const PlanSpec::Axes& all, int count) {
  return {all.end() - count, all.end()};
}

/// A channels-last tensor: extents and strides in cuDNN's order, in which channels come second.
Descriptor tensor(std::int64_t id, DType type, std::int64_t n, std::int64_t c,
                  const std::vector<std::int64_t>& space, const std::string& what) {
  std::vector<std::int64_t> extents{n, c}, strides(2 + space.size());
  extents.insert(extents.end(), space.begin(), space.end());
  std::int64_t stride = c;
  for (std::size_t i = extents.size(); i-- > 2;) {
    strides[i] = stride;
    stride *= extents[i];
  }
  strides[0] = stride;
  strides[1] = 1;
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR, what);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, cudnn_type(type))
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kPlanAlignment)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, extents)
      .set(CUDNN_ATTR_TENSOR_STRIDES, strides)
      .finalize();
  return made;
}

/// The attribute names of the three passes.
struct PassNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t convolution, x, kernel, y, alpha, beta;
};
PassNames names_of(PlanSpec::Pass pass) {
  switch (pass) {
    case PlanSpec::Pass::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case PlanSpec::Pass::backward_data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case PlanSpec::Pass::backward_weights:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
  LOCKSTEP_CHECK(false, "pass {}", static_cast<int>(pass));
}

Descriptor operation_graph(const PlanSpec& s, const PlanTarget& target, const std::string& what) {
  const int count = s.spatial_axes;
  const Descriptor x = tensor(kPlanX, s.type, s.n, s.in_c, axes(s.in, count), what),
                   kernel =
                       tensor(kPlanKernel, s.type, s.out_c, s.in_c / s.groups, axes(s.kernel, count), what),
                   y = tensor(kPlanY, s.type, s.n, s.out_c, axes(s.out, count), what);
  Descriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, what);
  convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::int64_t{count})
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, axes(s.padding, count))
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, axes(s.padding_after, count))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, axes(s.stride, count))
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, axes(s.dilation, count))
      .finalize();
  const PassNames names = names_of(s.pass);
  Descriptor operation(names.type, what);
  operation.set(names.convolution, convolution)
      .set(names.x, x)
      .set(names.kernel, kernel)
      .set(names.y, y)
      .set(names.alpha, CUDNN_TYPE_FLOAT, 1.0F)
      .set(names.beta, CUDNN_TYPE_FLOAT, 0.0F)
      .finalize();
  return graph_of({operation.native()}, target, what);
}

/// The workspace limit of an engine. Without tensor cores, good engines work on channels-first copies of all
/// operands. A lower limit left large batches to the one engine without workspace, which is near the end of
/// cuDNN's list. The limit depends on the shape alone, not on the card's memory.
std::int64_t most_workspace(const PlanSpec& s) {
  const auto product = [](const PlanSpec::Axes& axes) { return axes[0] * axes[1] * axes[2]; };
  const std::int64_t elements = s.n * (product(s.in) * s.in_c + product(s.out) * s.out_c) +
                                s.out_c * product(s.kernel) * (s.in_c / s.groups);
  return std::max(std::int64_t{512} << 20, 2 * elements * static_cast<std::int64_t>(size_in_bytes(s.type)));
}

/// cuDNN's message for its last error in this thread.
std::string last_message() {
  char text[256] = "";
  cudnnGetLastErrorString(text, sizeof text);
  return text;
}

/// The engines of a list, best first.
std::vector<Descriptor> engines(const Descriptor& graph, const PlanTarget& target,
                                cudnnBackendHeurMode_t mode, const std::string& what, std::string& reason) {
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, what);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (target.device != nullptr) heuristic.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.device);
  if (const cudnnStatus_t status = cudnnBackendFinalize(heuristic.native()); is_unsupported(status)) {
    reason = last_message();  // no list in this mode
    return {};
  } else {
    check(status, "cudnnBackendFinalize of the list of engines", what);
  }
  std::vector<Descriptor> found;
  std::vector<cudnnBackendDescriptor_t> natives;
  for (std::int64_t i = 0; i < kMaxEngines; ++i) {
    found.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, what);
    natives.push_back(found.back().native());
  }
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(heuristic.native(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, kMaxEngines, &count, natives.data()),
        "cudnnBackendGetAttribute", what);
  while (static_cast<std::int64_t>(found.size()) > count) found.pop_back();
  return found;
}

Descriptor engine_of(const Descriptor& configuration, const std::string& what) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR, what);
  cudnnBackendDescriptor_t native = engine.native();
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(configuration.native(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &native),
        "cudnnBackendGetAttribute", what);
  return engine;
}

/// FoundPlan::knobs.
std::string knobs_of(const Descriptor& configuration, const std::string& what) {
  std::vector<Descriptor> knobs;
  std::vector<cudnnBackendDescriptor_t> natives;
  for (int i = 0; i < CUDNN_KNOB_TYPE_COUNTS; ++i) {
    knobs.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, what);
    natives.push_back(knobs.back().native());
  }
  std::int64_t count = 0;
  check(
      cudnnBackendGetAttribute(configuration.native(), CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS, &count, natives.data()),
      "cudnnBackendGetAttribute", what);
  std::map<int, std::int64_t> settings;  // sorted
  for (std::size_t i = 0; i < knobs.size() && static_cast<std::int64_t>(i) < count; ++i) {
    const auto type =
        knobs[i].get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1);
    const auto value = knobs[i].get<std::int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1);
    settings[static_cast<int>(type.at(0))] = value.at(0);
  }
  std::string text;
  for (const auto& [knob, value] : settings) text += fmt::format(", knob {} = {}", knob, value);
  return text;
}

using Notes = std::vector<cudnnBackendNumericalNote_t>;
Notes notes_of(const Descriptor& engine) {
  return engine.get<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                                 CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
}
bool uses_tensor_cores(const Notes& notes) {
  return std::ranges::find(notes, CUDNN_NUMERICAL_NOTE_TENSOR_CORE) != notes.end();
}

bool acceptable(const Notes& notes, bool tensor_cores) {
  if (!tensor_cores && uses_tensor_cores(notes)) return false;
  return std::ranges::none_of(notes, [](cudnnBackendNumericalNote_t note) {
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
      case CUDNN_NUMERICAL_NOTE_FFT:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
        return true;
      default:
        return false;
    }
  });
}

}  // namespace

void check(cudnnStatus_t status, const char* call, const std::string& what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  const std::string message = last_message();
  throw Error(ErrorKind::device,
              fmt::format("{} for {} failed: {}{}{}", call, what, cudnnGetErrorString(status),
                          message.empty() ? "" : ": ", message));
}

bool is_unsupported(cudnnStatus_t status) {
  constexpr int kCategory = 1000;
  switch (status) {
    case CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER:
    case CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART:
    case CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING:
    case CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE:
      return false;
    default:
      return static_cast<int>(status) / kCategory == CUDNN_STATUS_NOT_SUPPORTED / kCategory;
  }
}

std::string describe(const FoundPlan& plan) {
  const auto index = plan.engine.get<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1);
  return fmt::format("engine {}{}, {} bytes of workspace", index.empty() ? -1 : index.front(), plan.knobs,
                     plan.workspace_bytes);
}

cudnnDataType_t cudnn_type(DType type) {
  switch (type) {
    case DType::f32:
      return CUDNN_DATA_FLOAT;
    case DType::bf16:
      return CUDNN_DATA_BFLOAT16;
    case DType::f16:
      return CUDNN_DATA_HALF;
    default:
      LOCKSTEP_CHECK(false, "cuDNN with operands of {}", name_of(type));
  }
}

Descriptor graph_of(const std::vector<cudnnBackendDescriptor_t>& operations, const PlanTarget& target,
                    const std::string& what) {
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, what);
  if (target.handle != nullptr) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  graph
      .set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations.data(),
           static_cast<std::int64_t>(operations.size()))
      .finalize();
  return graph;
}

FoundPlan find_plan(const PlanSpec& spec, const PlanTarget& target, const std::string& what,
                    FunctionRef<bool(const FoundPlan&)> is_right) {
  return choose_plan(operation_graph(spec, target, what), target, spec.tf32 || spec.type != DType::f32,
                     most_workspace(spec), what, is_right);
}

FoundPlan choose_plan(const Descriptor& graph, const PlanTarget& target, bool tensor_cores,
                      std::int64_t most_workspace, const std::string& what,
                      FunctionRef<bool(const FoundPlan&)> is_right) {
  int skipped = 0, unusable = 0, wrong = 0;
  std::string reason;
  for (cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
    for (const Descriptor& configuration : engines(graph, target, mode, what, reason)) {
      Descriptor engine = engine_of(configuration, what);
      const Notes notes = notes_of(engine);
      if (!acceptable(notes, tensor_cores)) {
        ++skipped;
        continue;
      }
      Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, what);
      if (target.handle != nullptr)
        plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
      if (target.device != nullptr) plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.device);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
      if (const cudnnStatus_t status = cudnnBackendFinalize(plan.native()); is_unsupported(status)) {
        reason = last_message();
      } else {
        check(status, "cudnnBackendFinalize of a plan", what);
        const auto bytes =
            plan.get<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1);
        if (bytes.at(0) <= most_workspace) {
          FoundPlan found{std::move(plan), std::move(engine), bytes.at(0), uses_tensor_cores(notes),
                          knobs_of(configuration, what)};
          if (is_right(found)) return found;
          ++wrong;
          continue;
        }
        reason = fmt::format("{} bytes of workspace", bytes.at(0));
      }
      ++unusable;
    }
  throw NotSupported(
      ErrorKind::device,
      fmt::format("cuDNN has no deterministic engine for {}: {} engines are nondeterministic or "
                  "inexact, {} are unusable{}{}{}",
                  what, skipped, unusable, reason.empty() ? "" : ", the last one: ", reason,
                  wrong == 0 ? "" : fmt::format(", {} compute wrongly", wrong)),
      {},
      wrong > 0      ? "Use another version of cuDNN; gpu.check_plans=false takes engines without a check."
      : tensor_cores ? ""
                     : "allowing TF32 makes more engines available");
}

Descriptor variant_pack(const void* x, const void* kernel, const void* y, void* workspace,
                        const std::string& what) {
  const void* addresses[] = {x, kernel, y};
  const std::int64_t names[] = {kPlanX, kPlanKernel, kPlanY};
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, what);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, addresses, 3)
      .set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, names, 3)
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace)
      .finalize();
  return pack;
}

}  // namespace lockstep::cuda
