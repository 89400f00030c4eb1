// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Products, sums and maxima along a middle axis on the CPU, per instruction-set level (isa.h).
#include "kernels/broadcast.h"

#include "kernels/isa.h"
#include "kernels/vec_sums.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

template <typename T>
void row_maximum(std::int64_t count, const T* x, T* y, std::int32_t* at) {
  float best = to_float(x[0]);
  std::int32_t index = 0;
  for (std::int64_t m = 1; m < count; ++m) {
    const float value = to_float(x[m]);
    if (value > best || (value != value && best == best)) {  // as where_larger
      best = value;
      index = static_cast<std::int32_t>(m);
    }
  }
  *y = x[index];
  if (at != nullptr) *at = index;
}

/// y[i] = a[i] * b[i].
template <typename T, typename B>
void multiply_elements(std::int64_t count, const T* a, const B* b, T* y) {
  for_each_vector(count, [=]<typename V>(std::int64_t i, V) {
    Lanes<V>::store(y + i, Lanes<V>::load(a + i) * Lanes<V>::load(b + i));
  });
}

/// y[i] = factor * x[i].
template <typename T>
void scale_elements(std::int64_t count, float factor, const T* x, T* y) {
  for_each_vector(
      count, [=]<typename V>(std::int64_t i, V) { Lanes<V>::store(y + i, Lanes<V>::load(x + i) * factor); });
}

template <typename T, typename B>
void multiply_typed(const BroadcastShape& s, const T* a, const B* b, T* y) {
  if (s.middle == 1) return multiply_elements(s.outer * s.inner, a, b, y);
  for (std::int64_t o = 0; o < s.outer; ++o) {
    const std::int64_t row = o * s.middle * s.inner;
    if (s.inner == 1)
      scale_elements(s.middle, to_float(b[o]), a + row, y + row);
    else
      for (std::int64_t at = row; at < row + s.middle * s.inner; at += s.inner)
        multiply_elements(s.inner, a + at, b + o * s.inner, y + at);
  }
}

template <typename T>
void repeat_typed(const BroadcastShape& s, float factor, const T* b, T* y) {
  for (std::int64_t o = 0; o < s.outer; ++o) {
    const std::int64_t row = o * s.middle * s.inner;
    if (s.inner == 1) {
      const T value = from_float<T>(factor * to_float(b[o]));
      for (std::int64_t m = 0; m < s.middle; ++m) y[row + m] = value;
    } else if (s.inner < kPanelColumns) {  // short rows: a register of columns at a time, over all m
      for_each_vector(s.inner, [&]<typename V>(std::int64_t i, V) {
        const V value = Lanes<V>::load(b + o * s.inner + i) * factor;
        for (std::int64_t at = row; at < row + s.middle * s.inner; at += s.inner)
          Lanes<V>::store(y + at + i, value);
      });
    } else {
      for (std::int64_t at = row; at < row + s.middle * s.inner; at += s.inner)
        scale_elements(s.inner, factor, b + o * s.inner, y + at);
    }
  }
}

template <typename T>
void sum_typed(const BroadcastShape& s, double factor, const T* a, const T* b, T* y) {
  for (std::int64_t o = 0; o < s.outer; ++o) {
    const T* left = a + o * s.middle * s.inner;
    T* to = y + o * s.inner;
    if (b == nullptr) {
      sum_rows(s.middle, s.inner, factor, to,
               [=]<typename V>(std::int64_t at, V) { return Lanes<V>::load(left + at); });
      continue;
    }
    const T* right = b + o * s.middle * s.inner;
    sum_rows(s.middle, s.inner, factor, to, [=]<typename V>(std::int64_t at, V) {
      return Lanes<V>::load(left + at) * Lanes<V>::load(right + at);
    });
  }
}

/// Merges row m of a matrix into the running maxima and their indices.
template <bool kIndices, typename T>
void maximum_of_row(std::int64_t count, std::int32_t m, const T* row, T* best, std::int32_t* index) {
  for_each_vector(count, [=]<typename V>(std::int64_t i, V) {
    using Indices = IntegerLanes<V>;
    const V value = Lanes<V>::load(row + i), old = Lanes<V>::load(best + i);
    Lanes<V>::store(best + i, where_larger(value, old, value, old));
    if constexpr (kIndices) {
      const auto here = typename Indices::Type{} + m;
      Indices::store(index + i, where_larger(value, old, here, Indices::load(index + i)));
    }
  });
}

template <typename T>
void maximum_typed(const BroadcastShape& s, const T* a, T* y, std::int32_t* at) {
  for (std::int64_t o = 0; o < s.outer; ++o) {
    const T* from = a + o * s.middle * s.inner;
    T* best = y + o * s.inner;
    std::int32_t* index = at == nullptr ? nullptr : at + o * s.inner;
    if (s.inner == 1) {
      row_maximum(s.middle, from, best, index);
      continue;
    }
    for (std::int64_t i = 0; i < s.inner; ++i) {
      best[i] = from[i];
      if (index != nullptr) index[i] = 0;
    }
    for (std::int64_t m = 1; m < s.middle; ++m) {
      const auto number = static_cast<std::int32_t>(m);
      if (index != nullptr)
        maximum_of_row<true>(s.inner, number, from + m * s.inner, best, index);
      else
        maximum_of_row<false>(s.inner, number, from + m * s.inner, best, index);
    }
  }
}

template <typename T>
void maximum_backward_typed(const BroadcastShape& s, const T* dy, const std::int32_t* at, T* dx) {
  for (std::int64_t o = 0; o < s.outer; ++o) {
    const T* from = dy + o * s.inner;
    const std::int32_t* index = at + o * s.inner;
    T* to = dx + o * s.middle * s.inner;
    if (s.inner == 1) {
      for (std::int64_t m = 0; m < s.middle; ++m) to[m] = T{};
      to[*index] = *from;
      continue;
    }
    for (std::int64_t m = 0; m < s.middle; ++m, to += s.inner)
      for_each_vector(s.inner, [=]<typename V>(std::int64_t i, V zero) {
        const auto here = IntegerLanes<V>::load(index + i) == static_cast<std::int32_t>(m);
        Lanes<V>::store(to + i, here ? Lanes<V>::load(from + i) : zero);
      });
  }
}

class Broadcast final : public BroadcastKernels {
 public:
  void multiply(const Lane&, const BroadcastShape& s, ConstData a, ConstData b, Data y) const override {
    with_type(y.type(), [&]<typename T>(T) {
      if (b.type() == dtype_of<T>)
        multiply_typed(s, a.as<T>(), b.as<T>(), y.as<T>());
      else
        multiply_typed(s, a.as<T>(), b.f32(), y.as<T>());
    });
  }

  void repeat(const Lane&, const BroadcastShape& s, float factor, ConstData b, Data y) const override {
    with_type(y.type(), [&]<typename T>(T) { repeat_typed(s, factor, b.as<T>(), y.as<T>()); });
  }

  void sum(const Lane&, const BroadcastShape& s, double factor, ConstData a, ConstData b,
           Data y) const override {
    with_type(y.type(), [&]<typename T>(T) { sum_typed(s, factor, a.as<T>(), b.as<T>(), y.as<T>()); });
  }

  void maximum(const Lane&, const BroadcastShape& s, ConstData a, Data y, std::int32_t* at) const override {
    with_type(y.type(), [&]<typename T>(T) { maximum_typed(s, a.as<T>(), y.as<T>(), at); });
  }

  void maximum_backward(const Lane&, const BroadcastShape& s, ConstData dy, const std::int32_t* at,
                        Data dx) const override {
    with_type(dx.type(), [&]<typename T>(T) { maximum_backward_typed(s, dy.as<T>(), at, dx.as<T>()); });
  }
};

}  // namespace

const BroadcastKernels& broadcast_kernels() {
  static const Broadcast kernels;
  return kernels;
}

}  // namespace lockstep::LOCKSTEP_ISA
