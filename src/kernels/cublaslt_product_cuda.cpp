// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cublaslt_product_cuda.h"

#include "core/error.h"

namespace lockstep::cuda {
namespace {

constexpr std::size_t kMaxWorkspaceBytes = std::size_t{32}
                                           << 20;  // the size recommended by cuBLAS for Hopper

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

CublasLtOwner<cublasLtMatrixLayoutOpaque_t> layout(DType type, std::int64_t rows, std::int64_t columns,
                                                   const std::string& what) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, native(type), static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(columns), rows),
        "cublasLtMatrixLayoutCreate", what);
  return CublasLtOwner<cublasLtMatrixLayoutOpaque_t>(made);
}

template <typename T>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, const T& value,
         const std::string& what) {
  check(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute", what);
}
template <typename T>
void prefer(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
            const T& value, const std::string& what) {
  check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
        "cublasLtMatmulPreferenceSetAttribute", what);
}

}  // namespace

void check(cublasStatus_t status, const char* call, const std::string& what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(ErrorKind::device, fmt::format("{} for {} failed: {} ({})", call, what,
                                             cublasLtGetStatusString(status), cublasLtGetStatusName(status)));
}

ProductLayouts layouts_of(const ProductShape& s) {
  const std::string what = s.describe();
  return {layout(s.from, s.transposed_a ? s.k : s.m, s.transposed_a ? s.m : s.k, what),
          layout(s.from, s.transposed_b ? s.n : s.k, s.transposed_b ? s.k : s.n, what),
          layout(s.to, s.m, s.n, what)};
}

CublasLtOwner<cublasLtMatmulDescOpaque_t> operation_of(const ProductShape& s) {
  const std::string what = s.describe();
  cublasLtMatmulDesc_t native = nullptr;
  check(cublasLtMatmulDescCreate(&native, s.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                                 CUDA_R_32F),
        "cublasLtMatmulDescCreate", what);
  CublasLtOwner<cublasLtMatmulDescOpaque_t> made(native);
  const auto transposed = [](bool yes) { return static_cast<std::int32_t>(yes ? CUBLAS_OP_T : CUBLAS_OP_N); };
  set(native, CUBLASLT_MATMUL_DESC_TRANSA, transposed(s.transposed_a), what);
  set(native, CUBLASLT_MATMUL_DESC_TRANSB, transposed(s.transposed_b), what);
  if (s.bias) {
    set(native, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS, what);
    // For the heuristic: it takes the bias's alignment from the pointer, and refuses that of no number.
    bias_pointer(native, reinterpret_cast<const void*>(std::uintptr_t{s.bias_alignment()}), what);
  }
  return made;
}

CublasLtOwner<cublasLtMatmulPreferenceOpaque_t> preference_of(const ProductShape& s) {
  const std::string what = s.describe();
  cublasLtMatmulPreference_t native = nullptr;
  check(cublasLtMatmulPreferenceCreate(&native), "cublasLtMatmulPreferenceCreate", what);
  CublasLtOwner<cublasLtMatmulPreferenceOpaque_t> made(native);
  const std::uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;  // a mask; no split is always allowed
  prefer(native, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes, what);
  prefer(native, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kMaxWorkspaceBytes}, what);
  for (const auto operand :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    prefer(native, operand, s.alignment, what);
  return made;
}

namespace {

std::uint32_t attribute_of(const cublasLtMatmulAlgo_t& algorithm,
                           cublasLtMatmulAlgoConfigAttributes_t attribute, std::size_t bytes,
                           const std::string& what) {
  std::uint32_t value = 0;
  std::size_t written = 0;
  check(cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, bytes, &written),
        "cublasLtMatmulAlgoConfigGetAttribute", what);
  return value;
}

}  // namespace

int num_splits(const cublasLtMatmulAlgo_t& algorithm, const std::string& what) {
  return static_cast<int>(
      attribute_of(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, sizeof(std::int32_t), what));
}

std::string describe(const cublasLtMatmulAlgo_t& algorithm, const std::string& what) {
  const auto number = [&](cublasLtMatmulAlgoConfigAttributes_t attribute, std::size_t bytes) {
    return attribute_of(algorithm, attribute, bytes, what);
  };
  constexpr std::size_t kWord = sizeof(std::uint32_t), kHalf = sizeof(std::uint16_t);
  return fmt::format(
      "algorithm {}, tile {}, stages {}, {} split(s), scheme {}, swizzling {}, option {}, inner "
      "shape {}, cluster {}",
      number(CUBLASLT_ALGO_CONFIG_ID, kWord), number(CUBLASLT_ALGO_CONFIG_TILE_ID, kWord),
      number(CUBLASLT_ALGO_CONFIG_STAGES_ID, kWord), num_splits(algorithm, what),
      number(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, kWord), number(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, kWord),
      number(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, kWord), number(CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, kHalf),
      number(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, kHalf));
}

void bias_pointer(cublasLtMatmulDesc_t operation, const void* bias, const std::string& what) {
  set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias, what);
}

}  // namespace lockstep::cuda
