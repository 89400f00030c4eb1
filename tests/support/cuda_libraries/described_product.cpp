// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "described_product.h"

#include "core/error.h"
#include "kernels/cublaslt_product_cuda.h"

namespace lockstep {

namespace {

/// The value of an attribute, which must have the size of T.
template <typename T, typename Get, typename Object, typename Attribute>
T value_of(const Get& get, Object object, Attribute attribute) {
  T value{};
  std::size_t written = 0;
  cuda::check(get(object, attribute, &value, sizeof value, &written), "GetAttribute",
              fmt::format("attribute {}", static_cast<int>(attribute)));
  LOCKSTEP_CHECK(written == sizeof value, "attribute {} has {} bytes", static_cast<int>(attribute), written);
  return value;
}

ProductMatrix matrix_of(cublasLtMatrixLayout_t layout) {
  const auto get = [&]<typename T>(T, cublasLtMatrixLayoutAttribute_t attribute) {
    return value_of<T>(cublasLtMatrixLayoutGetAttribute, layout, attribute);
  };
  LOCKSTEP_CHECK(get(std::int32_t{}, CUBLASLT_MATRIX_LAYOUT_ORDER) == CUBLASLT_ORDER_COL,
                 "the layout is not column-major");
  LOCKSTEP_CHECK(get(std::int32_t{}, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) == 1, "a batch");
  const auto type = get(std::uint32_t{}, CUBLASLT_MATRIX_LAYOUT_TYPE);
  LOCKSTEP_CHECK(type == CUDA_R_32F || type == CUDA_R_16BF || type == CUDA_R_16F, "numbers of type {}", type);
  return {type == CUDA_R_32F   ? DType::f32
          : type == CUDA_R_16F ? DType::f16
                               : DType::bf16,
          static_cast<std::int64_t>(get(std::uint64_t{}, CUBLASLT_MATRIX_LAYOUT_ROWS)),
          static_cast<std::int64_t>(get(std::uint64_t{}, CUBLASLT_MATRIX_LAYOUT_COLS)),
          get(std::int64_t{}, CUBLASLT_MATRIX_LAYOUT_LD)};
}

/// Returns the operands' alignment. Throws unless only deterministic algorithms are requested.
std::uint32_t alignment_of(const cuda::ProductShape& shape) {
  const auto preference = cuda::preference_of(shape);
  const auto get = [&]<typename T>(T, cublasLtMatmulPreferenceAttributes_t attribute) {
    return value_of<T>(cublasLtMatmulPreferenceGetAttribute, preference.get(), attribute);
  };
  LOCKSTEP_CHECK(get(std::uint32_t{}, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) ==
                     CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE,
                 "other reduction schemes are allowed");
  LOCKSTEP_CHECK(get(std::uint64_t{}, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) > 0,
                 "no workspace is allowed");
  const auto alignment = get(std::uint32_t{}, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    LOCKSTEP_CHECK(get(std::uint32_t{}, attribute) == alignment, "the operands differ in alignment");
  return alignment;
}

/// The alignment of the bias's address, on which the search for an algorithm depends (cublasLt.h). It refuses
/// an address that no number of the bias's type can have.
std::uintptr_t checked_bias_alignment(std::uintptr_t address, DType type, const std::string& what) {
  const bool possible = address != 0 && address % size_in_bytes(type) == 0;
  cuda::check(possible ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE,
              "cublasLtMatmulAlgoGetHeuristic", what);
  return address & -address;
}

}  // namespace

ProductAccount account_of(const cuda::ProductShape& shape) {
  const std::string what = shape.describe();
  const cuda::ProductLayouts layouts = cuda::layouts_of(shape);
  const auto operation = cuda::operation_of(shape);
  const auto get = [&]<typename T>(T, cublasLtMatmulDescAttributes_t attribute) {
    return value_of<T>(cublasLtMatmulDescGetAttribute, operation.get(), attribute);
  };
  const auto compute = get(std::int32_t{}, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE);
  LOCKSTEP_CHECK(compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_FAST_TF32,
                 "{}: computes by {}", what, compute);
  LOCKSTEP_CHECK(get(std::int32_t{}, CUBLASLT_MATMUL_DESC_SCALE_TYPE) == CUDA_R_32F &&
                     get(std::int32_t{}, CUBLASLT_MATMUL_DESC_POINTER_MODE) == CUBLASLT_POINTER_MODE_HOST,
                 "{}: the scales are not float32 of the host", what);
  const auto epilogue = get(std::uint32_t{}, CUBLASLT_MATMUL_DESC_EPILOGUE);
  LOCKSTEP_CHECK(epilogue == CUBLASLT_EPILOGUE_DEFAULT || epilogue == CUBLASLT_EPILOGUE_BIAS,
                 "{}: epilogue {}", what, epilogue);
  std::uintptr_t bias_alignment = 1;
  if (epilogue == CUBLASLT_EPILOGUE_BIAS) {
    LOCKSTEP_CHECK(get(std::int32_t{}, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE) == -1,
                   "{}: the bias does not have the result's type", what);
    bias_alignment = checked_bias_alignment(get(std::uintptr_t{}, CUBLASLT_MATMUL_DESC_BIAS_POINTER),
                                            matrix_of(layouts.d.get()).type, what);
    const auto* const bias = reinterpret_cast<const void*>(std::uintptr_t{1} << 32);
    cuda::bias_pointer(operation.get(), bias, what);
    LOCKSTEP_CHECK(get(std::uintptr_t{}, CUBLASLT_MATMUL_DESC_BIAS_POINTER) == std::uintptr_t{1} << 32,
                   "{}: a different bias", what);
  }
  return {matrix_of(layouts.a.get()),
          matrix_of(layouts.b.get()),
          matrix_of(layouts.d.get()),
          get(std::int32_t{}, CUBLASLT_MATMUL_DESC_TRANSA) == CUBLAS_OP_T,
          get(std::int32_t{}, CUBLASLT_MATMUL_DESC_TRANSB) == CUBLAS_OP_T,
          epilogue == CUBLASLT_EPILOGUE_BIAS,
          compute == CUBLAS_COMPUTE_32F_FAST_TF32,
          alignment_of(shape),
          bias_alignment};
}

}  // namespace lockstep
