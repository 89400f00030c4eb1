// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Arrays as Eigen's matrices and arrays, for layers, losses, metrics and hooks of one's own:
//
//   matrix(pass.outputs[0], rows, columns).noalias() = matrix(pass.inputs[0], rows, in) * matrix(kernel, in,
//   columns); array(tensor) = array(tensor).max(0.0F);
//
// Views copy nothing. Matrices are row-major: a row per sample or position, a column per feature. Programs
// that include this header need Eigen 3.4; Lockstep's other headers do not.
//
// Same bits: an element-wise expression has them. So has a sum or a product over whole arrays of a
// microshard, whose shape fixes its order; in a microshard nothing depends on ranks or threads. Build with
// -ffp-contract=off.
#pragma once

#include <Eigen/Core>

#include "core/data.h"
#include "core/tensor.h"

namespace lockstep {

using MatrixView = Eigen::Map<Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
using ConstMatrixView =
    Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
using ArrayView = Eigen::Map<Eigen::Array<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
using ConstArrayView = Eigen::Map<const Eigen::Array<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
using RowView = Eigen::Map<Eigen::RowVectorXf>;
using ConstRowView = Eigen::Map<const Eigen::RowVectorXf>;

/// `rows` x `columns` float32 numbers. Data of a 16-bit type is an error.
inline MatrixView matrix(float* data, std::int64_t rows, std::int64_t columns) {
  return {data, rows, columns};
}
inline ConstMatrixView matrix(const float* data, std::int64_t rows, std::int64_t columns) {
  return {data, rows, columns};
}
inline ArrayView array(float* data, std::int64_t rows, std::int64_t columns) { return {data, rows, columns}; }
inline ConstArrayView array(const float* data, std::int64_t rows, std::int64_t columns) {
  return {data, rows, columns};
}
inline RowView row(float* data, std::int64_t columns) { return {data, columns}; }
inline ConstRowView row(const float* data, std::int64_t columns) { return {data, columns}; }

inline MatrixView matrix(const Data& data, std::int64_t rows, std::int64_t columns) {
  return matrix(data.f32(), rows, columns);
}
inline ConstMatrixView matrix(const ConstData& data, std::int64_t rows, std::int64_t columns) {
  return matrix(data.f32(), rows, columns);
}
inline ArrayView array(const Data& data, std::int64_t rows, std::int64_t columns) {
  return array(data.f32(), rows, columns);
}
inline ConstArrayView array(const ConstData& data, std::int64_t rows, std::int64_t columns) {
  return array(data.f32(), rows, columns);
}

/// A tensor: the last axis is the columns, all others are rows.
inline MatrixView matrix(const Tensor& tensor) { return {tensor.f32(), tensor.rows(), tensor.cols()}; }
inline ArrayView array(const Tensor& tensor) { return {tensor.f32(), tensor.rows(), tensor.cols()}; }

}  // namespace lockstep
