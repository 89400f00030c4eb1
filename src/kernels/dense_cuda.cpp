// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows times a matrix on a GPU: cuBLASLt for all three passes. Our matrices are row-major and cuBLAS's
// column-major: a row-major matrix is its transpose there, so y = x W is y' = W' x' with the operands as they
// lie.
//
// Determinism: cuBLASLt gives the same bits for the same algorithm, shape and GPU, unless it cuts the inner
// dimension and adds the parts as they come. The reduction scheme is restricted to the one that leaves parts
// in the workspace and adds them in order (CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) and to no cut at all. The
// algorithm is chosen by cuBLAS's heuristic, not by timing, once per shape, when a primitive is made.
//
// ReLU is not an epilogue of the product: CUBLASLT_EPILOGUE_RELU is max(x, 0), which is 0 for NaN on a GPU,
// and a broken weight would go on unseen. It is one pass of our own, in float32 together with the bias; a
// bias alone is the epilogue.
//
// In 16-bit types the operands are of that type (the pack has the rounded weights, as they lie), sums and
// scales are float32, and so is the gradient of the weights. A bias is the epilogue there with relu, too: it
// is added to the float32 sum, so y is rounded once, and relu of a rounded number needs no rounding. The
// epilogue takes a bias of y's type only (cublasLt.h), so the bias is rounded like the weights, into scratch,
// before the product: a launch on a row, where a pass of our own behind it would read and write y again, or,
// to round once, a float32 y: 2 bytes of memory traffic per element, not 6 or 10. Where cuBLASLt has no
// algorithm for a product: float32's products of widened numbers (widened_linear.h).
#include <cublasLt.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "core/error.h"
#include "kernels/cuda_launch.h"
#include "kernels/factory_cuda.h"
#include "kernels/linear_cuda.h"
#include "kernels/widened_linear.h"

namespace lockstep::cuda {
namespace {

constexpr std::size_t kMaxWorkspaceBytes = std::size_t{32} << 20;  // what cuBLAS recommends for Hopper
constexpr std::size_t kWorkspaceAlignment = 256;                   // cublasLtMatmul asks for it
constexpr std::uint32_t kAlignment = 16;  // of all matrices, unless the spec says otherwise

void check(cublasStatus_t status, const char* call, const std::string& what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(ErrorKind::device, fmt::format("{} for {} failed: {} ({})", call, what,
                                             cublasLtGetStatusString(status), cublasLtGetStatusName(status)));
}

/// The handle of the current device, made when first asked for. Lives as long as the program: at its end CUDA
/// may be gone already.
cublasLtHandle_t handle() {
  static std::mutex mutex;
  static std::map<int, cublasLtHandle_t> handles;
  int device = 0;
  cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  const std::lock_guard lock(mutex);
  cublasLtHandle_t& found = handles[device];
  if (found == nullptr) check(cublasLtCreate(&found), "cublasLtCreate", "matrix products");
  return found;
}

cudaDataType_t native(DType type) {
  switch (type) {
    case DType::f32:
      return CUDA_R_32F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    default:
      LOCKSTEP_CHECK(false, "a product of {}", name_of(type));
  }
}

/// A column-major product d (m x n) = op(a) op(b) (+ bias[m], of d's type).
struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0;
  bool transposed_a = false, transposed_b = false, bias = false, tf32 = false;
  std::uint32_t alignment = kAlignment;
  DType from = DType::f32, to = DType::f32;  ///< of a and b; of d
  auto key() const {
    return std::tuple(m, n, k, transposed_a, transposed_b, bias, tf32, alignment, from, to);
  }
  std::string describe() const {
    return fmt::format("a {} product of {} x {} x {}{}{}{}{}{}", name_of(from), m, n, k,
                       to != from ? fmt::format(" in {}", name_of(to)) : "",
                       transposed_a ? ", a transposed" : "", transposed_b ? ", b transposed" : "",
                       bias ? ", bias" : "", tf32 ? ", TF32" : "");
  }
};

class Product {
 public:
  Product(const ProductShape& shape, int lanes) : shape_(shape), what_(shape.describe()) {
    const ProductShape& s = shape_;
    a_ = layout(s.from, s.transposed_a ? s.k : s.m, s.transposed_a ? s.m : s.k);
    b_ = layout(s.from, s.transposed_b ? s.n : s.k, s.transposed_b ? s.k : s.n);
    d_ = layout(s.to, s.m, s.n);
    for (int lane = 0; lane < lanes; ++lane) operations_.push_back(operation());
    choose_algorithm();
  }
  ~Product() {
    for (cublasLtMatmulDesc_t operation : operations_) cublasLtMatmulDescDestroy(operation);
    for (cublasLtMatrixLayout_t one : {a_, b_, d_})
      if (one != nullptr) cublasLtMatrixLayoutDestroy(one);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  std::size_t scratch_bytes() const {
    return algorithm_.workspaceSize == 0 ? 0 : algorithm_.workspaceSize + kWorkspaceAlignment;
  }

  void run(const Lane& lane, const void* a, const void* b, const void* bias, void* d) const {
    LOCKSTEP_CHECK(lane.index >= 0 && lane.index < static_cast<int>(operations_.size()), "lane {} of {}",
                   lane.index, operations_.size());
    LOCKSTEP_CHECK(lane.scratch_bytes >= scratch_bytes(), "lane {} brings {} bytes of scratch, {} needed",
                   lane.index, lane.scratch_bytes, scratch_bytes());
    const auto addresses = reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b) |
                           reinterpret_cast<std::uintptr_t>(d) | reinterpret_cast<std::uintptr_t>(bias);
    LOCKSTEP_CHECK(addresses % shape_.alignment == 0, "{}: an operand is not aligned to {} bytes", what_,
                   shape_.alignment);
    const cublasLtMatmulDesc_t operation = operations_[static_cast<std::size_t>(lane.index)];
    if (shape_.bias) set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    const auto scratch = (reinterpret_cast<std::uintptr_t>(lane.scratch) + kWorkspaceAlignment - 1) /
                         kWorkspaceAlignment * kWorkspaceAlignment;
    const float one = 1.0F, zero = 0.0F;
    check(cublasLtMatmul(handle(), operation, &one, a, a_, b, b_, &zero, d, d_, d, d_, &algorithm_.algo,
                         algorithm_.workspaceSize == 0 ? nullptr : reinterpret_cast<void*>(scratch),
                         algorithm_.workspaceSize, stream_of(lane)),
          "cublasLtMatmul", what_);
  }

 private:
  cublasLtMatrixLayout_t layout(DType type, std::int64_t rows, std::int64_t columns) const {
    cublasLtMatrixLayout_t made = nullptr;
    check(cublasLtMatrixLayoutCreate(&made, native(type), static_cast<std::uint64_t>(rows),
                                     static_cast<std::uint64_t>(columns), rows),
          "cublasLtMatrixLayoutCreate", what_);
    return made;
  }

  template <typename T>
  void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, const T& value) const {
    check(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute", what_);
  }

  /// One per lane: it holds the bias's address.
  cublasLtMatmulDesc_t operation() const {
    cublasLtMatmulDesc_t made = nullptr;
    check(cublasLtMatmulDescCreate(&made, shape_.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                                   CUDA_R_32F),
          "cublasLtMatmulDescCreate", what_);
    const auto transposed = [](bool yes) {
      return static_cast<std::int32_t>(yes ? CUBLAS_OP_T : CUBLAS_OP_N);
    };
    set(made, CUBLASLT_MATMUL_DESC_TRANSA, transposed(shape_.transposed_a));
    set(made, CUBLASLT_MATMUL_DESC_TRANSB, transposed(shape_.transposed_b));
    if (shape_.bias) {
      set(made, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      // For the heuristic, which may look at its alignment; run() sets the address.
      set(made, CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<const void*>(std::uintptr_t{kAlignment}));
    }
    return made;
  }

  void choose_algorithm() {
    static std::mutex mutex;
    static std::map<std::tuple<int, decltype(shape_.key())>, cublasLtMatmulHeuristicResult_t> chosen;
    int device = 0;
    cuda::check(cudaGetDevice(&device), "cudaGetDevice");
    const std::lock_guard lock(mutex);
    const auto key = std::tuple(device, shape_.key());
    if (const auto found = chosen.find(key); found != chosen.end()) {
      algorithm_ = found->second;
      return;
    }
    cublasLtMatmulPreference_t preference = nullptr;
    check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate", what_);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      return cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value);
    };
    const std::uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;  // a mask; no cut is always allowed
    cublasStatus_t status = prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
    if (status == CUBLAS_STATUS_SUCCESS)
      status = prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kMaxWorkspaceBytes});
    for (auto operand :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      if (status == CUBLAS_STATUS_SUCCESS) status = prefer(operand, shape_.alignment);
    int count = 0;
    if (status == CUBLAS_STATUS_SUCCESS)
      status = cublasLtMatmulAlgoGetHeuristic(handle(), operations_.front(), a_, b_, d_, d_, preference, 1,
                                              &algorithm_, &count);
    cublasLtMatmulPreferenceDestroy(preference);
    check(status, "cublasLtMatmulAlgoGetHeuristic", what_);
    LOCKSTEP_REQUIRE(count > 0, ErrorKind::device, "cuBLAS has no deterministic algorithm for {}", what_);
    check(algorithm_.state, "cublasLtMatmulAlgoGetHeuristic", what_);
    chosen[key] = algorithm_;
  }

  ProductShape shape_;
  std::string what_;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
  std::vector<cublasLtMatmulDesc_t> operations_;
  cublasLtMatmulHeuristicResult_t algorithm_{};
};

class CudaDense final : public LinearPrimitive {
 public:
  CudaDense(const DenseSpec& spec, int lanes, const CudaOptions& options)
      : spec_(spec), bias_in_product_(spec.bias && (!spec.relu || spec.y_type() != DType::f32)) {
    LOCKSTEP_CHECK(spec.n > 0 && spec.in > 0 && spec.out > 0, "n {} in {} out {}", spec.n, spec.in, spec.out);
    ProductShape shape{spec.out, spec.n, spec.in};
    shape.tf32 = options.allow_tf32 && spec.dtype == DType::f32;
    shape.from = spec.dtype, shape.to = spec.y_type();
    if (!spec.aligned) shape.alignment = static_cast<std::uint32_t>(size_in_bytes(spec.dtype));
    const auto product = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
      shape.m = m, shape.n = n, shape.k = k;
      return shape;
    };
    shape.bias = bias_in_product_;
    forward_.emplace(product(spec.out, spec.n, spec.in), lanes);
    if (!spec.training) return;
    shape.bias = false, shape.transposed_a = true, shape.to = spec.dx_type();
    backward_data_.emplace(product(spec.in, spec.n, spec.out), lanes);
    shape.transposed_a = false, shape.transposed_b = true, shape.to = DType::f32;
    backward_weights_.emplace(product(spec.out, spec.in, spec.n), lanes);
  }

  std::size_t scratch_bytes() const override {
    std::size_t bytes = forward_->scratch_bytes();
    for (const auto* product : {&backward_data_, &backward_weights_})
      if (product->has_value()) bytes = std::max(bytes, (*product)->scratch_bytes());
    return bytes + bias_bytes();
  }
  std::size_t packed_bytes() const override {
    return packs() ? static_cast<std::size_t>(spec_.in * spec_.out) * size_in_bytes(spec_.dtype) : 0;
  }
  bool same_packing(const LinearPrimitive& other) const override {
    const auto* o = dynamic_cast<const CudaDense*>(&other);
    return o != nullptr && o->spec_.dtype == spec_.dtype && o->packed_bytes() == packed_bytes();
  }
  void pack(const Lane& lane, const float* weights, void* packed) const override {
    if (packs()) elementwise_kernels().convert(lane, spec_.in * spec_.out, weights, {packed, spec_.dtype});
  }

  void forward(const Lane& lane, ConstData x, const float* weights, const void* packed, const float* bias,
               Data y) const override {
    Lane rest = lane;
    const void* added = bias_in_product_ ? bias : nullptr;
    if (bias_bytes() > 0) added = rounded_bias(rest, bias);
    forward_->run(rest, used(weights, packed), address_in(spec_.dtype, x), added,
                  address_in(spec_.y_type(), y));
    const float* left = spec_.bias && !bias_in_product_ ? bias : nullptr;
    if (left != nullptr || spec_.relu) add_bias(lane, spec_.n, spec_.out, left, spec_.relu, y);
  }
  void backward_data(const Lane& lane, ConstData dy, const float* weights, const void* packed,
                     Data dx) const override {
    LOCKSTEP_CHECK(spec_.training, "backward pass of a primitive made without training");
    backward_data_->run(lane, used(weights, packed), address_in(spec_.dtype, dy), nullptr,
                        address_in(spec_.dx_type(), dx));
  }
  void backward_weights(const Lane& lane, ConstData x, ConstData dy, float* dweights) const override {
    LOCKSTEP_CHECK(spec_.training, "backward pass of a primitive made without training");
    backward_weights_->run(lane, address_in(spec_.dtype, dy), address_in(spec_.dtype, x), nullptr, dweights);
  }
  double flops() const override {
    return 2.0 * static_cast<double>(spec_.n * spec_.in) * static_cast<double>(spec_.out);
  }

 private:
  bool packs() const { return spec_.dtype != DType::f32; }
  /// Of the scratch that a rounded bias takes, with what aligns it; 0: there is none.
  std::size_t bias_bytes() const {
    if (!bias_in_product_ || spec_.y_type() == DType::f32) return 0;
    const std::size_t bytes = static_cast<std::size_t>(spec_.out) * size_in_bytes(spec_.dtype);
    return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment +
           kWorkspaceAlignment;
  }
  /// The bias in y's type at the begin of the lane's scratch, of which the rest is left.
  const void* rounded_bias(Lane& lane, const float* bias) const {
    LOCKSTEP_CHECK(lane.scratch_bytes >= scratch_bytes(), "lane {} brings {} bytes of scratch, {} needed",
                   lane.index, lane.scratch_bytes, scratch_bytes());
    const auto begin = (reinterpret_cast<std::uintptr_t>(lane.scratch) + kWorkspaceAlignment - 1) /
                       kWorkspaceAlignment * kWorkspaceAlignment;
    void* rounded = reinterpret_cast<void*>(begin);
    elementwise_kernels().convert(lane, spec_.out, bias, {rounded, spec_.dtype});
    lane.scratch = static_cast<char*>(lane.scratch) + bias_bytes();
    lane.scratch_bytes -= bias_bytes();
    return rounded;
  }
  const void* used(const float* weights, const void* packed) const { return packs() ? packed : weights; }

  DenseSpec spec_;
  bool bias_in_product_;
  std::optional<Product> forward_, backward_data_, backward_weights_;
};

}  // namespace

std::unique_ptr<LinearPrimitive> make_dense(const DenseSpec& spec, int lanes, const CudaOptions& options) {
  return make_in_its_type<CudaDense>(elementwise_kernels(), "", spec, lanes, options);
}

std::string dense_library_version() {
  const std::size_t version = cublasLtGetVersion();
  return fmt::format("cuBLAS {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace lockstep::cuda
