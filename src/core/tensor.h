// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A tensor is a view: an address, an element type and a shape, row-major and dense. It owns nothing (Buffer
// and Arena own the memory).
#pragma once

#include <cstddef>

#include "core/dtype.h"
#include "core/error.h"
#include "core/shape.h"

namespace lockstep {

class Tensor {
 public:
  Tensor() = default;
  Tensor(void* data, DType type, Shape shape) : data_(data), type_(type), shape_(shape) {}

  const Shape& shape() const { return shape_; }
  DType dtype() const { return type_; }
  std::int64_t num_elements() const { return shape_.num_elements(); }
  std::size_t size_bytes() const { return static_cast<std::size_t>(num_elements()) * size_in_bytes(type_); }
  /// The data as a matrix: the last axis is the columns, all other axes are rows.
  std::int64_t cols() const { return shape_.last(); }
  std::int64_t rows() const { return cols() == 0 ? 0 : num_elements() / cols(); }
  bool empty() const { return data_ == nullptr; }

  void* raw() const { return data_; }
  template <typename T>
  T* data() const {
    LOCKSTEP_CHECK(type_ == dtype_of<T>, "a {} tensor used as {}", name_of(type_), name_of(dtype_of<T>));
    return static_cast<T*>(data_);
  }
  float* f32() const { return data<float>(); }

 private:
  void* data_ = nullptr;
  DType type_ = DType::f32;
  Shape shape_;
};

}  // namespace lockstep
