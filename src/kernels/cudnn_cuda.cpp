// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How a plan is chosen: cuDNN's heuristic gives engines in the order of expected speed, its fallback list the
// rest. An engine is passed over if cuDNN notes that it is not deterministic, rounds inputs or partial sums,
// or computes by Winograd or FFT (whose errors are not those of a sum of products); in float32 without TF32
// also if it uses tensor cores. The first that accepts the operation is taken: nothing is timed, so every run
// of a machine takes the same.
#include "kernels/cudnn_cuda.h"

#include <cudnn.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "core/error.h"
#include "kernels/cuda_launch.h"
#include "kernels/factory_cuda.h"

namespace lockstep::cuda {
namespace {

constexpr std::int64_t kMaxWorkspaceBytes = std::int64_t{512} << 20;
constexpr std::int64_t kAlignment = 16;
constexpr std::int64_t kMaxEngines = 64;  ///< that a list of engines is asked for

void check(cudnnStatus_t status, const char* call, const std::string& what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char detail[256] = "";
  cudnnGetLastErrorString(detail, sizeof detail);
  throw Error(ErrorKind::device,
              fmt::format("{} for {} failed: {}{}{}", call, what, cudnnGetErrorString(status),
                          detail[0] == '\0' ? "" : ": ", detail));
}

/// The handle of the current device and the lock under which it is used: cuDNN allows one thread at a time.
/// It lives as long as the program: at its end CUDA may be gone already.
struct Handle {
  cudnnHandle_t native = nullptr;
  std::mutex mutex;
};
Handle& handle() {
  static std::mutex mutex;
  static auto* handles = new std::map<int, Handle>;
  int device = 0;
  cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  const std::lock_guard lock(mutex);
  Handle& found = (*handles)[device];
  if (found.native == nullptr) check(cudnnCreate(&found.native), "cudnnCreate", "convolutions");
  return found;
}

/// An owned backend descriptor; `what` is for errors.
class Descriptor {
 public:
  Descriptor(cudnnBackendDescriptorType_t type, const std::string& what) : what_(&what) {
    check(cudnnBackendCreateDescriptor(type, &native_), "cudnnBackendCreateDescriptor", what);
  }
  ~Descriptor() {
    if (native_ != nullptr) cudnnBackendDestroyDescriptor(native_);
  }
  Descriptor(Descriptor&& other) noexcept
      : native_(std::exchange(other.native_, nullptr)), what_(other.what_) {}
  Descriptor& operator=(Descriptor&&) = delete;

  cudnnBackendDescriptor_t native() const { return native_; }

  template <typename T>
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T* values,
                  std::int64_t count) {
    check(cudnnBackendSetAttribute(native_, name, type, count, values), "cudnnBackendSetAttribute", *what_);
    return *this;
  }
  template <typename T>
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    return set(name, type, &value, 1);
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const std::vector<std::int64_t>& values) {
    return set(name, CUDNN_TYPE_INT64, values.data(), static_cast<std::int64_t>(values.size()));
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& other) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.native_);
  }
  Descriptor& finalize() {
    check(cudnnBackendFinalize(native_), "cudnnBackendFinalize", *what_);
    return *this;
  }

 private:
  cudnnBackendDescriptor_t native_ = nullptr;
  const std::string* what_;
};

constexpr std::int64_t kX = 1, kKernel = 2, kY = 3;  // names of the operands in a plan

/// The last `count` axes.
std::vector<std::int64_t> axes(const PlanSpec::Axes& all, int count) {
  return {all.end() - count, all.end()};
}

cudnnDataType_t native(DType type) {
  switch (type) {
    case DType::f32:
      return CUDNN_DATA_FLOAT;
    case DType::bf16:
      return CUDNN_DATA_BFLOAT16;
    case DType::f16:
      return CUDNN_DATA_HALF;
    default:
      LOCKSTEP_CHECK(false, "a convolution of {}", name_of(type));
  }
}

/// Channels last: extents and strides in cuDNN's order, which is channels second.
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
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, native(type))
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kAlignment)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, extents)
      .set(CUDNN_ATTR_TENSOR_STRIDES, strides)
      .finalize();
  return made;
}

/// What the three passes call their attributes.
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

Descriptor operation_graph(const PlanSpec& s, cudnnHandle_t native, const std::string& what) {
  const int count = s.spatial_axes;
  const DType kernel_type = s.pass == PlanSpec::Pass::backward_weights ? s.gradient : s.type;
  const Descriptor x = tensor(kX, s.type, s.n, s.in_c, axes(s.in, count), what),
                   kernel =
                       tensor(kKernel, kernel_type, s.out_c, s.in_c / s.groups, axes(s.kernel, count), what),
                   y = tensor(kY, s.type, s.n, s.out_c, axes(s.out, count), what);
  Descriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, what);
  convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::int64_t{count})
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, axes(s.padding, count))
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, axes(s.padding, count))
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
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, what);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, native)
      .set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation)
      .finalize();
  return graph;
}

/// The engines of a list, best first.
std::vector<Descriptor> engines(const Descriptor& graph, cudnnBackendHeurMode_t mode,
                                const std::string& what) {
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, what);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (cudnnBackendFinalize(heuristic.native()) != CUDNN_STATUS_SUCCESS) return {};  // no list of this kind
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

bool acceptable(const Descriptor& configuration, bool tensor_cores, const std::string& what) {
  const Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR, what);
  cudnnBackendDescriptor_t native = engine.native();
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(configuration.native(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &native),
        "cudnnBackendGetAttribute", what);
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  check(cudnnBackendGetAttribute(native, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                 CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes.data()),
        "cudnnBackendGetAttribute", what);
  notes.resize(static_cast<std::size_t>(std::min<std::int64_t>(count, CUDNN_NUMERICAL_NOTE_TYPE_COUNT)));
  return std::none_of(notes.begin(), notes.end(), [&](cudnnBackendNumericalNote_t note) {
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
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
        return !tensor_cores;
      default:
        return false;
    }
  });
}

class CudnnPlan final : public Plan {
 public:
  explicit CudnnPlan(const PlanSpec& spec) : what_(spec.describe()), handle_(handle()) {
    const std::lock_guard lock(handle_.mutex);
    const Descriptor graph = operation_graph(spec, handle_.native, what_);
    int passed_over = 0, refused = 0;
    for (cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
      for (const Descriptor& configuration : engines(graph, mode, what_)) {
        if (!acceptable(configuration, spec.tf32 || spec.type != DType::f32, what_))
          ++passed_over;
        else if (accept(configuration))
          return;
        else
          ++refused;
      }
    throw Error(
        ErrorKind::device,
        fmt::format("cuDNN has no deterministic engine for {}: {} engines are not deterministic or not "
                    "exact, {} refused",
                    what_, passed_over, refused),
        {}, spec.tf32 || spec.type != DType::f32 ? "" : "allowing TF32 allows more engines");
  }

  std::size_t workspace_bytes() const override { return static_cast<std::size_t>(workspace_bytes_); }

  void run(cudaStream_t stream, const void* x, const void* kernel, const void* y,
           void* workspace) const override {
    const void* addresses[] = {x, kernel, y};
    for (const void* address : addresses)
      LOCKSTEP_CHECK(reinterpret_cast<std::uintptr_t>(address) % kAlignment == 0,
                     "{}: not aligned to {} bytes", what_, kAlignment);
    const std::int64_t names[] = {kX, kKernel, kY};
    Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, what_);
    pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, addresses, 3)
        .set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, names, 3)
        .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace)
        .finalize();
    const std::lock_guard lock(handle_.mutex);
    check(cudnnSetStream(handle_.native, stream), "cudnnSetStream", what_);
    check(cudnnBackendExecute(handle_.native, plan_->native(), pack.native()), "cudnnBackendExecute", what_);
  }

 private:
  /// Makes the plan of an engine, unless cuDNN refuses it for this operation or it needs too much memory.
  bool accept(const Descriptor& configuration) {
    auto plan = std::make_unique<Descriptor>(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, what_);
    plan->set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle_.native)
        .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    if (cudnnBackendFinalize(plan->native()) != CUDNN_STATUS_SUCCESS) return false;
    std::int64_t count = 0;
    check(cudnnBackendGetAttribute(plan->native(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
                                   1, &count, &workspace_bytes_),
          "cudnnBackendGetAttribute", what_);
    if (workspace_bytes_ > kMaxWorkspaceBytes) return false;
    plan_ = std::move(plan);
    return true;
  }

  std::string what_;
  Handle& handle_;
  std::unique_ptr<Descriptor> plan_;
  std::int64_t workspace_bytes_ = 0;
};

}  // namespace

std::string PlanSpec::describe() const {
  const char* name = pass == Pass::forward         ? "forward"
                     : pass == Pass::backward_data ? "gradient of the input"
                                                   : "gradient of the weights";
  const auto text = [&](const Axes& all) {
    return fmt::format("{}", fmt::join(axes(all, spatial_axes), "x"));
  };
  return fmt::format(
      "a {} convolution of {}x{}x{} to {}x{} ({}) in {}{}, padding {}, stride {}, dilation {}, {} group(s){}",
      text(kernel), n, text(in), in_c, text(out), out_c, name, name_of(type),
      pass == Pass::backward_weights && gradient != type ? fmt::format(" to {}", name_of(gradient)) : "",
      text(padding), text(stride), text(dilation), groups, tf32 ? ", TF32" : "");
}

std::shared_ptr<const Plan> plan_for(const PlanSpec& spec) {
  static std::mutex mutex;
  // Never destroyed: at the program's end CUDA may be gone already.
  static auto* plans = new std::map<std::pair<int, std::string>, std::shared_ptr<const Plan>>;
  int device = 0;
  cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  const std::lock_guard lock(mutex);
  std::shared_ptr<const Plan>& plan = (*plans)[{device, spec.describe()}];
  if (!plan) plan = std::make_shared<CudnnPlan>(spec);
  return plan;
}

std::string convolution_library_version() {
  const std::size_t version = cudnnGetVersion();
  return fmt::format("cuDNN {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace lockstep::cuda
