// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Table rows by index on the CPU, per instruction-set level (isa.h). A radix sort, least significant digit
// first, groups the positions; it keeps the order of equal rows.
#include "kernels/embedding.h"

#include "kernels/isa.h"
#include "kernels/shard_tree.h"
#include "kernels/vec.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

constexpr std::int64_t kBlock = 64;  ///< positions that are added in float32
constexpr int kDigitBits = 8;
constexpr std::int32_t kDigits = 1 << kDigitBits;

/// The row that an id names, or -1.
inline std::int32_t row_of(float id, std::int64_t rows) {
  if (!(id >= 0.0F && id < static_cast<float>(rows))) return -1;
  const std::int32_t row = static_cast<std::int32_t>(id);
  return static_cast<float>(row) == id ? row : -1;
}

/// Adds the rows of dy listed in order[first .. last), columns [column, column + width), in order.
template <typename V, int kPieces, typename T>
inline void add_rows(const std::int32_t* order, std::int64_t first, std::int64_t last, std::int64_t units,
                     const T* dy, float* to) {
  using L = Lanes<V>;
  V sum[kPieces] = {};
  double totals[kPieces * L::kWidth] = {};
  for (std::int64_t begin = first; begin < last; begin += kBlock) {
    const std::int64_t end = begin + kBlock < last ? begin + kBlock : last;
    for (int k = 0; k < kPieces; ++k) sum[k] = V{};
    for (std::int64_t i = begin; i < end; ++i) {
      const T* from = dy + static_cast<std::int64_t>(order[i]) * units;
#pragma GCC unroll 16
      for (int k = 0; k < kPieces; ++k) sum[k] += L::load(from + k * L::kWidth);
    }
    if (last - first <= kBlock) break;
    float columns[kPieces * L::kWidth];
    for (int k = 0; k < kPieces; ++k) L::store(columns + k * L::kWidth, sum[k]);
    for (int i = 0; i < kPieces * L::kWidth; ++i) totals[i] += static_cast<double>(columns[i]);
  }
  if (last - first <= kBlock)
    for (int k = 0; k < kPieces; ++k) L::store(to + k * L::kWidth, sum[k]);
  else
    for (int i = 0; i < kPieces * L::kWidth; ++i) to[i] = static_cast<float>(totals[i]);
}

template <typename T>
inline std::int64_t gather_rows(std::int64_t positions, std::int64_t rows, std::int64_t units,
                                const float* ids, std::int64_t padding, const float* table, T* y) {
  std::int64_t bad = -1;
  for (std::int64_t p = 0; p < positions; ++p) {
    const std::int32_t row = row_of(ids[p], rows);
    T* to = y + p * units;
    if (row < 0 || row == padding) {
      const T value = from_float<T>(row < 0 ? __builtin_nanf("") : 0.0F);
      for (std::int64_t u = 0; u < units; ++u) to[u] = value;
      if (row < 0 && bad < 0) bad = p;
      continue;
    }
    const float* from = table + row * units;
    std::int64_t u = 0;
    for (; u + kLanes <= units; u += kLanes) Lanes<Vec>::store(to + u, Lanes<Vec>::load(from + u));
    for (; u < units; ++u) to[u] = from_float<T>(from[u]);
  }
  return bad;
}

template <typename T>
inline void add_touched(std::int64_t units, const TouchedRows& touched, const T* dy, bool dense,
                        float* values) {
  constexpr int kPieces = kPanelColumns / kLanes;
  for (std::int32_t k = 0; k < *touched.count; ++k) {
    float* to = values + static_cast<std::int64_t>(dense ? touched.rows[k] : k) * units;
    const std::int64_t first = touched.starts[k], last = touched.starts[k + 1];
    std::int64_t u = 0;
    for (; u + kPanelColumns <= units; u += kPanelColumns)
      add_rows<Vec, kPieces>(touched.order, first, last, units, dy + u, to + u);
    for (; u + kLanes <= units; u += kLanes)
      add_rows<Vec, 1>(touched.order, first, last, units, dy + u, to + u);
    for (; u < units; ++u) add_rows<float, 1>(touched.order, first, last, units, dy + u, to + u);
  }
}

/// Sums the k-th row's places along the shard tree, into one of them, and returns its address.
inline const float* add_places(const TouchedRows& touched, std::int32_t k, std::int64_t leaf_rows,
                               std::int64_t units, float* values) {
  std::int32_t pending[kMaxPending] = {};  // places of partial sums
  int count = 0;
  const auto leaf_of = [&](std::int32_t place) { return static_cast<std::int32_t>(place / leaf_rows); };
  const auto join = [&] {  // adds the right one to the left one
    float* into = values + pending[count - 2] * units;
    const float* from = values + pending[count - 1] * units;
    for (std::int64_t u = 0; u < units; ++u) into[u] += from[u];
    --count;
  };
  for (std::int32_t i = touched.starts[k]; i < touched.starts[k + 1]; ++i) {
    const std::int32_t place = touched.order[i];
    while (count > 1 &&
           joined_before(leaf_of(pending[count - 2]), leaf_of(pending[count - 1]), leaf_of(place)))
      join();
    pending[count++] = place;
  }
  while (count > 1) join();
  return values + pending[0] * units;
}

class Embedding final : public EmbeddingKernels {
 public:
  std::int64_t gather(const Lane&, std::int64_t positions, std::int64_t rows, std::int64_t units,
                      const float* ids, std::int64_t padding, const float* table, Data y) const override {
    std::int64_t bad = -1;
    with_type(y.type(), [&]<typename T>(T) {
      bad = gather_rows(positions, rows, units, ids, padding, table, y.as<T>());
    });
    return bad;
  }

  std::size_t group_bytes(std::int64_t positions) const override {
    return 3 * static_cast<std::size_t>(positions) * sizeof(std::int32_t);
  }

  void group_by_row(const Lane&, std::int64_t positions, std::int64_t rows, const float* ids,
                    std::int64_t padding, void* workspace, const TouchedRows& touched) const override {
    std::int32_t* keys = static_cast<std::int32_t*>(workspace);
    std::int32_t* other_keys = keys + positions;
    std::int32_t* order = touched.order;
    std::int32_t* other_order = other_keys + positions;
    std::int64_t counted = 0;
    for (std::int64_t p = 0; p < positions; ++p) {
      const std::int32_t row = row_of(ids[p], rows);
      if (row < 0 || row == padding) continue;
      keys[counted] = row;
      order[counted++] = static_cast<std::int32_t>(p);
    }
    for (int shift = 0; (rows - 1) >> shift > 0; shift += kDigitBits) {
      std::int32_t starts[kDigits] = {};
      for (std::int64_t i = 0; i < counted; ++i) ++starts[(keys[i] >> shift) & (kDigits - 1)];
      std::int32_t next = 0;
      for (std::int32_t& start : starts) {
        const std::int32_t here = start;
        start = next;
        next += here;
      }
      for (std::int64_t i = 0; i < counted; ++i) {
        const std::int32_t to = starts[(keys[i] >> shift) & (kDigits - 1)]++;
        other_keys[to] = keys[i];
        other_order[to] = order[i];
      }
      std::int32_t* swapped = keys;
      keys = other_keys;
      other_keys = swapped;
      swapped = order;
      order = other_order;
      other_order = swapped;
    }
    if (order != touched.order)
      for (std::int64_t i = 0; i < counted; ++i) touched.order[i] = order[i];
    std::int32_t count = 0;
    for (std::int64_t i = 0; i < counted; ++i) {
      if (i > 0 && keys[i] == keys[i - 1]) continue;
      touched.rows[count] = keys[i];
      touched.starts[count++] = static_cast<std::int32_t>(i);
    }
    touched.starts[count] = static_cast<std::int32_t>(counted);
    *touched.count = count;
  }

  std::size_t sum_bytes(std::int64_t, std::int64_t) const override { return 0; }

  void accumulate(const Lane&, std::int64_t, std::int64_t units, const TouchedRows& touched, ConstData dy,
                  bool dense, void*, float* values) const override {
    with_type(dy.type(), [&]<typename T>(T) { add_touched(units, touched, dy.as<T>(), dense, values); });
  }

  void ids_of_rows(const Lane&, std::int64_t leaves, std::int64_t leaf_rows, const std::int32_t* counts,
                   const std::int32_t* rows, float* ids) const override {
    for (std::int64_t leaf = 0; leaf < leaves; ++leaf)
      for (std::int64_t k = 0; k < leaf_rows; ++k) {
        const std::int64_t place = leaf * leaf_rows + k;
        ids[place] = k < counts[leaf] ? static_cast<float>(rows[place]) : -1.0F;
      }
  }

  void add_leaves(const Lane&, std::int64_t, std::int64_t leaf_rows, std::int64_t units,
                  const TouchedRows& touched, float* leaf_values, float* values) const override {
    for (std::int32_t k = 0; k < *touched.count; ++k) {
      const float* sum = add_places(touched, k, leaf_rows, units, leaf_values);
      for (std::int64_t u = 0; u < units; ++u) values[k * units + u] = sum[u];
    }
  }
};

}  // namespace

const EmbeddingKernels& embedding_kernels() {
  static const Embedding kernels;
  return kernels;
}

}  // namespace lockstep::LOCKSTEP_ISA
