// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Optimizer updates on a GPU: each is one pass over memory with the CPU's operations in the CPU's order, so
// it has the CPU's bits. For a sparse table gradient, the pass covers all rows, or only the rows with a
// gradient.
#include "kernels/update.h"

#include <cmath>

#include "kernels/cuda_columns.h"
#include "kernels/factory_cuda.h"
#include "kernels/rules.h"

namespace lockstep::cuda {
namespace {

inline __device__ void look_at(float value, float most, NumbersFound* found) {
  if (std::fabs(value) <= most) return;
  found->large = 1;  // all threads write the same value
  if (!std::isfinite(value)) found->not_finite = 1;
}

struct Look {
  const float* values;
  float most;
  NumbersFound* found;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    const auto value = V::load(values + i);
    for (int k = 0; k < V::kWidth; ++k) look_at(value.at[k], most, found);
  }
};

__global__ void __launch_bounds__(kThreads)
    look_at_rows_kernel(const std::int32_t* num_rows, const float* values, std::int64_t first,
                        std::int64_t last, std::int64_t width, float most, NumbersFound* found) {
  const std::int64_t count = *num_rows, end = (last < count ? last : count) * width;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = first * width + static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       i < end; i += stride)
    look_at(values[i], most, found);
}

struct Unscale {
  float factor;
  float* g;
  std::int32_t* not_finite;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    auto value = V::load(g + i);
    bool finite = true;
    for (int k = 0; k < V::kWidth; ++k) {
      value.at[k] *= factor;
      finite = finite && std::isfinite(value.at[k]);
    }
    V::store(g + i, value);
    if (!finite) *not_finite = 1;  // all threads write the same value
  }
};

__global__ void __launch_bounds__(kThreads)
    unscale_rows_kernel(const std::int32_t* num_rows, float* values, std::int64_t first, std::int64_t last,
                        std::int64_t width, float factor, std::int32_t* not_finite) {
  const std::int64_t count = *num_rows, end = (last < count ? last : count) * width;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = first * width + static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       i < end; i += stride) {
    values[i] *= factor;
    if (!std::isfinite(values[i])) *not_finite = 1;  // all threads write the same value
  }
}

/// A rule of kernels/rules.h for a few adjacent elements.
template <typename Rule>
struct Elements {
  Rule rule;
  float coupled, kept;
  bool decays;
  float* w;
  RuleSlots slots;
  template <typename V>
  __device__ void apply(std::int64_t i, const Pack<V::kWidth>& gradient) const {
    const Rule now = begun(rule);
    auto weight = V::load(w + i);
    Pack<V::kWidth> slot[Rule::kSlots + 1];
    for (int s = 0; s < Rule::kSlots; ++s) slot[s] = V::load(slots.at[s] + i);
    for (int k = 0; k < V::kWidth; ++k) {
      float g = gradient.at[k];
      if (decays) {
        g += coupled * weight.at[k];
        weight.at[k] *= kept;
      }
      float own[Rule::kSlots + 1];
      for (int s = 0; s < Rule::kSlots; ++s) own[s] = slot[s].at[k];
      now.apply(weight.at[k], g, own);
      for (int s = 0; s < Rule::kSlots; ++s) slot[s].at[k] = own[s];
    }
    for (int s = 0; s < Rule::kSlots; ++s) V::store(slots.at[s] + i, slot[s]);
    V::store(w + i, weight);
  }
};

template <typename Rule>
Elements<Rule> elements(const Rule& rule, const RuleStep& step, float* w, const RuleSlots& slots) {
  return {rule, step.coupled, step.kept, step.decays(), w, slots};
}

/// w and the slots are aligned for Wide.
bool wide_aligned_all(float* w, const RuleSlots& slots) {
  return wide_aligned(w, slots.at[0], slots.at[1], slots.at[2]);
}

/// A flat range with a gradient for each element.
template <typename All>
struct Dense {
  All elements;
  const float* g;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    elements.template apply<V>(i, V::load(g + i));
  }
};

/// Rows are the table's rows from update.first on; columns are its numbers. Each thread searches the list for
/// its row's gradient: the threads of a row take the same path, and the list is small compared with the
/// table.
template <typename All>
struct AllRows {
  All elements;
  RowUpdate update;
  template <typename V>
  __device__ std::int64_t column(std::int64_t number) const {
    return number;
  }
  template <typename V>
  __device__ void row(std::int64_t number, std::int64_t at, std::int64_t row) const {
    row += update.first;
    const std::int64_t count = *update.count;
    std::int64_t low = 0, high = count;  // the first listed row that is not before the row
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      if (update.rows[middle] < row)
        low = middle + 1;
      else
        high = middle;
    }
    Pack<V::kWidth> gradient = {};
    if (low < count && update.rows[low] == row)
      gradient = V::load(update.values + low * update.width + number);
    elements.template apply<V>(update.first * update.width + at, gradient);
  }
};

/// Rows are those with a gradient, as far as there are any; columns are their numbers.
template <typename All>
struct GivenRows {
  All elements;
  RowUpdate update;
  template <typename V>
  __device__ std::int64_t column(std::int64_t number) const {
    return number;
  }
  template <typename V>
  __device__ void row(std::int64_t number, std::int64_t at, std::int64_t k) const {
    if (k >= *update.count) return;
    const std::int64_t row = update.rows[k];
    if (row < update.first || row >= update.last) return;
    elements.template apply<V>(row * update.width + number, V::load(update.values + at));
  }
};

/// `wide`: the table's addresses are aligned for Wide.
template <typename All>
void move_rows(const Lane& lane, const char* name, const RowUpdate& update, bool wide, const All& elements) {
  if (update.others)
    map_columns(lane, name, update.last - update.first, update.width, wide && wide_aligned(update.values),
                AllRows<All>{elements, update});
  else
    map_columns(lane, name, update.most, update.width, wide && wide_aligned(update.values),
                GivenRows<All>{elements, update});
}

template <typename All>
void move_all(const Lane& lane, std::int64_t count, bool wide, const All& elements, const float* g) {
  for_each_element(lane, "update", count, wide && wide_aligned(g), Dense<All>{elements, g});
}

class Update final : public UpdateKernels {
 public:
  void look(const Lane& lane, std::int64_t count, const float* values, float most,
            NumbersFound* found) const override {
    for_each_element(lane, "look", count, wide_aligned(values), Look{values, most, found});
  }

  void look_at_rows(const Lane& lane, const SparseRows& gradient, std::int64_t first, std::int64_t last,
                    std::int64_t width, float most, NumbersFound* found) const override {
    if (last > first)
      launch(lane, "look_at_rows", look_at_rows_kernel, blocks_for((last - first) * width), kThreads,
             gradient.count, gradient.values, first, last, width, most, found);
  }

  void unscale(const Lane& lane, std::int64_t count, float factor, float* g,
               std::int32_t* not_finite) const override {
    for_each_element(lane, "unscale", count, wide_aligned(g), Unscale{factor, g, not_finite});
  }

  void unscale_rows(const Lane& lane, const SparseRows& gradient, std::int64_t first, std::int64_t last,
                    std::int64_t width, float factor, std::int32_t* not_finite) const override {
    if (last > first)
      launch(lane, "unscale_rows", unscale_rows_kernel, blocks_for((last - first) * width), kThreads,
             gradient.count, gradient.values, first, last, width, factor, not_finite);
  }

  void apply(const Lane& lane, const RuleStep& step, std::int64_t count, float* w, const float* g,
             const RuleSlots& slots) const override {
    Rules::with(step, [&](const auto& rule) {
      move_all(lane, count, wide_aligned_all(w, slots), elements(rule, step, w, slots), g);
    });
  }

  void apply_rows(const Lane& lane, const RuleStep& step, const RowUpdate& update, float* w,
                  const RuleSlots& slots) const override {
    Rules::with(step, [&](const auto& rule) {
      move_rows(lane, "update of rows", update, wide_aligned_all(w, slots), elements(rule, step, w, slots));
    });
  }
};

}  // namespace

const UpdateKernels& update_kernels() {
  static const Update kernels;
  return kernels;
}

}  // namespace lockstep::cuda
