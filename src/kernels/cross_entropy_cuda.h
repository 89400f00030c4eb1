// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Softmax cross-entropy and its gradient (private to loss_cuda.cu). A thread reads its packs of a row in
// batches, keeps a running maximum and the sum of exponentials relative to it: float32 within a batch, double
// across. The order depends on the row's length alone, not on where the row is kept between its two passes:
// - A row of up to kWarpColumns classes is a warp's; one batch stays in registers.
// - A longer row is a block's. It stays in shared memory, as far as that holds it; the rest is read again.
//   While a thread writes the gradient of its part, it reads the same part of the block's next row into the
//   places that become free, so the memory is never idle and the threads need no barrier.
#pragma once

#include <type_traits>

#include "kernels/cuda_device_limits.h"
#include "kernels/cuda_rows.h"
#include "kernels/cuda_shared_memory.h"
#include "kernels/loss_sums_cuda.h"

namespace lockstep::cuda {
namespace {

/// exp(x) in two instructions: the relative error is below 2^-23 (2 + |x|), and results below 2^-126 are 0.
inline __device__ float quick_exp(float x) {
  constexpr float kLog2E = 1.44269504F;
#if defined(__CUDA_ARCH__)
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x * kLog2E));
  return result;
#else
  return std::exp2(x * kLog2E);
#endif
}

/// A thread's part of a row: the largest logit so far, its place, and the sum of exp(x - largest).
struct RunningSum {
  static constexpr int kNone = INT32_MAX;
  float largest = -INFINITY;
  int place = kNone;
  double sum = 0.0;

  /// Adds packs first, first + kGroup, ... of the row; -infinity adds nothing. A new maximum scales the sum,
  /// once for all of them.
  template <int kGroup, int kPacks, typename V>
  __device__ void add(const Pack<V::kWidth> (&packs)[kPacks], const RowPacks<V>& row, int first) {
    float top = -INFINITY;
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
      for (int i = 0; i < V::kWidth; ++i) top = fmaxf(top, packs[p].at[i]);  // ignores NaN
    if (top > largest) {
      sum *= exp(static_cast<double>(largest) - static_cast<double>(top));  // 0 at first
      largest = top;
      place = kNone;
#pragma unroll
      for (int p = kPacks - 1; p >= 0; --p)
        for (int i = V::kWidth - 1; i >= 0; --i)
          if (packs[p].at[i] == top) place = row.place(first + p * kGroup) + i;
    }
    const float base = largest == -INFINITY ? 0.0F : largest;  // -inf - -inf would be NaN
    float batch = 0.0F;
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
      for (int i = 0; i < V::kWidth; ++i) batch += quick_exp(packs[p].at[i] - base);
    sum += static_cast<double>(batch);
  }
};

/// The numbers of a row: its maximum and the sum of exp(x - maximum), to all threads of the group.
struct RowSum {
  Maximum top;
  double sum;
};
template <int kGroup>
__device__ RowSum merged(const RunningSum& mine, float first) {
  using G = Group<kGroup>;
  Maximum top = G::maximum({mine.largest, mine.place});
  if (std::isnan(first)) top = {first, -1};
  const double factor = exp(static_cast<double>(mine.largest) - static_cast<double>(top.value));
  return {top, G::sum(mine.sum * factor)};
}

template <typename T>
struct CrossEntropy {
  const T* x;
  const std::int32_t* labels;
  float gradient_scale;
  T* dx;
  double* partial;  ///< {loss, correct} per block of kLossBlocks
};

/// What the gradient of a row is made of.
struct RowGradient {
  float top, factor, at_label;
  std::int32_t label;

  __device__ RowGradient(const RowSum& row, std::int32_t its_label, float label_logit, float scale)
      : top(row.top.value), label(its_label) {
    factor = static_cast<float>(static_cast<double>(scale) / row.sum);
    // In double: for a confident prediction, softmax - 1 would lose precision in float32.
    at_label = static_cast<float>((static_cast<double>(expf(label_logit - top)) - row.sum) / row.sum *
                                  static_cast<double>(scale));
  }
  /// The gradient of a pack of logits as if none of them were the label's.
  template <typename T, int kWidth>
  __device__ Pack<kWidth> of(Pack<kWidth> value) const {
    for (int i = 0; i < kWidth; ++i) {
      const float logit = value.at[i] - top;
      value.at[i] = (sizeof(T) == sizeof(float) ? expf(logit) : quick_exp(logit)) * factor;
    }
    return value;
  }
};

/// Writes the gradient of a pack of logits.
template <typename V, typename T>
__device__ void store_gradient(const RowPacks<V>& row, const RowGradient& gradient, int pack,
                               const Pack<V::kWidth>& logits, T* dx) {
  row.store(dx, pack, gradient.template of<T>(logits));
  const int place = row.place(pack);
  if (gradient.label >= place && gradient.label - place < V::kWidth)
    dx[row.first + row.skip + gradient.label] = narrowed<T>(gradient.at_label);
}

/// The logits of a thread that make up a batch.
constexpr int kBatchLogits = 16;
template <typename V>
constexpr int kBatchPacks = kBatchLogits / V::kWidth;

/// Reads pack `pack` of a row unless the row ends before it.
template <typename V, typename T>
__device__ Pack<V::kWidth> load_logits(const RowPacks<V>& row, const T* x, int pack) {
  if (pack < row.packs()) return row.load(x, pack, -INFINITY);
  Pack<V::kWidth> none;
  for (int i = 0; i < V::kWidth; ++i) none.at[i] = -INFINITY;
  return none;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_kernel(std::int64_t rows, int classes, bool wide, CrossEntropy<T> c) {
  using G = Group<kWarp>;
  using V = Whole<T>;
  constexpr int kPacks = kBatchPacks<V>, kStep = kWarp * kPacks;
  double loss = 0.0, hits = 0.0;
  for_each_row<kWarp>(rows, [&](std::int64_t number) {
    const RowPacks<V> row(number, classes, wide);
    const std::int32_t label = c.labels[number];
    if (label < 0) {
      for (int p = G::thread(); c.dx != nullptr && p < row.packs(); p += kWarp)
        row.store(c.dx, p, Pack<V::kWidth>{});
      return;
    }
    const T* logits = c.x + number * classes;
    const float label_logit = widened(logits[label]), first_logit = widened(logits[0]);
    Pack<V::kWidth> packs[kPacks];
    const auto load = [&](int first) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) packs[p] = load_logits(row, c.x, first + p * kWarp);
    };
    RunningSum running;
    for (int first = G::thread(); first - G::thread() < row.packs(); first += kStep) {
      load(first);
      running.add<kWarp>(packs, row, first);
    }
    const RowSum sum = merged<kWarp>(running, first_logit);  // all threads have read these logits
    loss += log(sum.sum) - (static_cast<double>(label_logit) - static_cast<double>(sum.top.value));
    hits += sum.top.index == label ? 1.0 : 0.0;
    if (c.dx == nullptr) return;
    const RowGradient gradient(sum, label, label_logit, c.gradient_scale);
    const bool held = row.packs() <= kStep;
    for (int first = G::thread(); first < row.packs(); first += kStep) {
      if (!held) load(first);
#pragma unroll
      for (int p = 0; p < kPacks; ++p)
        if (const int pack = first + p * kWarp; pack < row.packs())
          store_gradient(row, gradient, pack, packs[p], c.dx);
    }
  });
  write_partial<kWarp>(loss, hits, c.partial);
}

/// Parts of a row that a thread waits for one after the other.
constexpr int kSections = 4;

/// Waits for the parts of a row up to this one, where each is a group of copies and none has been started
/// since.
inline __device__ void wait_for_section(int section) {
  static_assert(kSections == 4);
  if (section == 0)
    wait_copies<3>();
  else if (section == 1)
    wait_copies<2>();
  else if (section == 2)
    wait_copies<1>();
  else
    wait_copies<0>();
}

/// Dynamic shared memory: packs as they are in memory, [held batches][kBatchPacks][kThreads]. Partial sum i
/// has rows i, i + sums, ...; a block has sums blockIdx.x, blockIdx.x + gridDim.x, ...
template <typename T>
__global__ void __launch_bounds__(kThreads, 3)
    long_cross_entropy_kernel(std::int64_t rows, int classes, bool wide, int sums, int held,
                              CrossEntropy<T> c) {
  using G = Group<kThreads>;
  using V = Whole<T>;
  using Slot = typename V::template Raw<T>;
  constexpr int kPacks = kBatchPacks<V>, kStep = kThreads * kPacks;
  Slot* const slots = held > 0 ? dynamic_shared<Slot>() : nullptr;
  const int per_section = (held + kSections - 1) / kSections, thread = static_cast<int>(threadIdx.x);
  const auto section_end = [&](int section) {
    const int end = (section + 1) * per_section;
    return end < held ? end : held;
  };
  const auto pack_of = [&](int batch, int p) { return batch * kStep + p * kThreads + thread; };
  const auto slot_of = [&](int batch, int p) { return slots + (batch * kPacks + p) * kThreads + thread; };
  /// Starts to read a section of a row; partial packs are left out.
  const auto start = [&](bool wanted, std::int64_t number, int section) {
    if (wanted) {
      const RowPacks<V> row(number, classes, wide);
      for (int batch = section * per_section; batch < section_end(section); ++batch)
#pragma unroll
        for (int p = 0; p < kPacks; ++p)
          if (const int pack = pack_of(batch, p); row.in_one_access(pack))
            copy_async<kAccessBytes>(slot_of(batch, p), c.x + row.first + pack * V::kWidth, true);
    }
    commit_copies();
  };
  int sum_index = static_cast<int>(blockIdx.x);
  std::int64_t number = sum_index;
  bool wanted = number < rows && c.labels[number] >= 0;
  for (int section = 0; section < kSections; ++section) start(wanted, number, section);
  double loss = 0.0, hits = 0.0;
  while (sum_index < sums) {
    int next_index = sum_index;
    std::int64_t next = number + sums;
    if (next >= rows) next = next_index = sum_index + static_cast<int>(gridDim.x);
    const bool next_wanted = next_index < sums && next < rows && c.labels[next] >= 0;
    if (number < rows) {
      const RowPacks<V> row(number, classes, wide);
      const int batches = (row.packs() + kStep - 1) / kStep;
      const auto load = [&](int batch, int p) {
        const int pack = pack_of(batch, p);
        if (batch < held && row.in_one_access(pack)) return V::template unpack<T>(*slot_of(batch, p));
        return load_logits(row, c.x, pack);
      };
      const std::int32_t label = c.labels[number];
      const T* logits = c.x + number * classes;
      const float label_logit = wanted ? widened(logits[label]) : 0.0F, first_logit = widened(logits[0]);
      RunningSum running;
      const auto add = [&](int batch) {
        Pack<V::kWidth> packs[kPacks];
#pragma unroll
        for (int p = 0; p < kPacks; ++p) packs[p] = load(batch, p);
        running.template add<kThreads>(packs, row, pack_of(batch, 0));
      };
      for (int section = 0; section < kSections; ++section) {
        wait_for_section(section);
        for (int batch = section * per_section; wanted && batch < section_end(section) && batch < batches;
             ++batch)
          add(batch);
      }
      for (int batch = held; wanted && batch < batches; ++batch) add(batch);
      RowSum sum{};
      if (wanted) {
        sum = merged<kThreads>(running, first_logit);  // all threads have read these logits
        loss += log(sum.sum) - (static_cast<double>(label_logit) - static_cast<double>(sum.top.value));
        hits += sum.top.index == label ? 1.0 : 0.0;
      }
      const RowGradient gradient(sum, label, label_logit, c.gradient_scale);
      const auto write = [&](int batch) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p)
          if (const int pack = pack_of(batch, p); pack < row.packs()) {
            if (wanted)
              store_gradient(row, gradient, pack, load(batch, p), c.dx);
            else
              row.store(c.dx, pack, Pack<V::kWidth>{});
          }
      };
      for (int section = 0; section < kSections; ++section) {
        for (int batch = section * per_section;
             c.dx != nullptr && batch < section_end(section) && batch < batches; ++batch)
          write(batch);
        start(next_wanted, next, section);
      }
      for (int batch = held; c.dx != nullptr && batch < batches; ++batch) write(batch);
    }
    if (next_index != sum_index) {
      if (G::thread() == 0) {
        c.partial[2 * sum_index] = loss;
        c.partial[2 * sum_index + 1] = hits;
      }
      loss = hits = 0.0;
    }
    sum_index = next_index;
    number = next;
    wanted = next_wanted;
  }
}

/// Returns the number of partial sums. Zero rows have one, which is zero.
template <typename T>
int launch_cross_entropy(const Lane& lane, std::int64_t rows, std::int64_t classes,
                         const CrossEntropy<T>& c) {
  constexpr const char* kName = "softmax_cross_entropy";
  const bool wide = wide_aligned(c.x, c.dx);
  const auto columns = static_cast<int>(classes);
  const auto at_least_one = [](std::int64_t n) { return static_cast<int>(n < 1 ? 1 : n); };
  if (classes <= kWarpColumns) {
    constexpr std::int64_t kRows = Group<kWarp>::kRows;
    const std::int64_t blocks = (rows + kRows - 1) / kRows;
    const int sums = at_least_one(blocks < kLossBlocks ? blocks : kLossBlocks);
    launch(lane, kName, cross_entropy_kernel<T>, static_cast<unsigned int>(sums), kThreads, rows, columns,
           wide, c);
    return sums;
  }
  const int sums = at_least_one(rows < kLossBlocks ? rows : kLossBlocks);
  constexpr int kPacks = kBatchPacks<Whole<T>>, kBatchBytes = kPacks * kThreads * kAccessBytes;
  constexpr int kReserved = 1024, kResident = 3;  // bytes of a block's other shared memory; blocks
  const int most = static_cast<int>(most_shared_bytes());
  const int packs = (columns + 2 * Whole<T>::kWidth - 2) / Whole<T>::kWidth;  // at most, wherever it begins
  const int batches = (packs + kThreads * kPacks - 1) / (kThreads * kPacks);
  const int fitting = (most - kReserved) / kBatchBytes, held = batches < fitting ? batches : fitting;
  const int resident = most / (held * kBatchBytes + kReserved);
  const int blocks = num_multiprocessors() * (resident < kResident ? resident : kResident);
  launch_with_shared(lane, kName, long_cross_entropy_kernel<T>,
                     static_cast<unsigned int>(blocks < sums ? blocks : sums), kThreads,
                     static_cast<std::size_t>(held) * kBatchBytes, rows, columns, wide, sums, held, c);
  return sums;
}

template <typename T, int kGroup>
__global__ void __launch_bounds__(kThreads)
    dense_cross_entropy_kernel(std::int64_t rows, std::int64_t columns, bool wide, const T* x,
                               const float* labels, float gradient_scale, T* dx, double* partial) {
  using G = Group<kGroup>;
  using V = Whole<T>;
  const int classes = static_cast<int>(columns);
  double loss = 0.0, hits = 0.0;
  for_each_row<kGroup>(rows, [&](std::int64_t number) {
    const RowPacks<V> row(number, classes, wide);
    const float first_logit = widened(x[number * classes]), first_target = labels[number * classes];
    RunningSum running;
    Maximum wanted{-INFINITY, RunningSum::kNone};
    double mass = 0.0, dot = 0.0;
    for (int pack = G::thread(); pack < row.packs(); pack += kGroup) {
      const Pack<V::kWidth> read[1] = {row.load(x, pack, -INFINITY)}, &logits = read[0],
                            targets = row.load(labels, pack, 0.0F);
      const int place = row.place(pack);
      running.add<kGroup>(read, row, pack);
      for (int i = 0; i < V::kWidth; ++i) {
        const double t = static_cast<double>(targets.at[i]);
        mass += t;
        // A class with t = 0 adds nothing, however small its probability (0 * -inf).
        if (t != 0.0) dot += t * static_cast<double>(logits.at[i]);
        const bool inside = place + i >= 0 && place + i < classes;
        if (const Maximum next{targets.at[i], place + i}; inside && larger(next, wanted)) wanted = next;
      }
    }
    const auto [top, sum] = merged<kGroup>(running, first_logit);
    wanted = G::maximum(wanted);
    mass = G::sum(mass);
    dot = G::sum(dot);
    loss += mass * (log(sum) + static_cast<double>(top.value)) - dot;
    hits += top.index >= 0 && top.index == wanted.index && !std::isnan(first_target) ? 1.0 : 0.0;
    if (dx == nullptr) return;
    const float factor = static_cast<float>(mass / sum);
    for (int pack = G::thread(); pack < row.packs(); pack += kGroup) {
      Pack<V::kWidth> logits = row.load(x, pack, -INFINITY);
      const Pack<V::kWidth> targets = row.load(labels, pack, 0.0F);
      for (int i = 0; i < V::kWidth; ++i)
        logits.at[i] = (expf(logits.at[i] - top.value) * factor - targets.at[i]) * gradient_scale;
      row.store(dx, pack, logits);
    }
  });
  write_partial<kGroup>(loss, hits, partial);
}

}  // namespace
}  // namespace lockstep::cuda
