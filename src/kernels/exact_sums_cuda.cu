// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/exact_sums_cuda.h"

#include "kernels/cuda_launch.h"
#include "kernels/cuda_vector.h"

namespace lockstep::cuda {
namespace {

using Operand = ExactSums::Operand;
constexpr std::uint32_t kBiasSeed = 3, kElementSeed = 4;  // operands: 0 to 2

struct Place {
  std::int64_t at[kOperandAxes];
};

/// The 32-bit finalizer of MurmurHash3 (A. Appleby, public domain).
__device__ std::uint32_t hash_of(std::int64_t place, std::uint32_t seed) {
  const auto wide = static_cast<std::uint64_t>(place);
  std::uint32_t word = static_cast<std::uint32_t>(wide) * 0x9e3779b9U +
                       static_cast<std::uint32_t>(wide >> 32) + (seed + 1) * 0x7f4a7c15U;
  word ^= word >> 16;
  word *= 0x85ebca6bU;
  word ^= word >> 13;
  word *= 0xc2b2ae35U;
  return word ^ word >> 16;
}

__device__ std::int64_t place_in(const OperandLayout& layout, const Place& p) {
  std::int64_t place = 0;
  for (int axis = 0; axis < kOperandAxes; ++axis) place += p.at[axis] * layout.stride[axis];
  return place;
}

__host__ __device__ std::int64_t positions_of(const OperandLayout& layout) {
  return layout.extent[1] * layout.extent[2] * layout.extent[3];
}
__host__ __device__ std::int64_t count_of(const OperandLayout& layout) {
  return layout.extent[0] * positions_of(layout) * layout.extent[4];
}

/// Divides a number that is not negative and returns the rest. 64-bit divisions are slow, and rarely needed.
__device__ std::int64_t divide(std::int64_t& number, std::int64_t divisor) {
  if ((number | divisor) >> 32 == 0) {
    const auto n = static_cast<std::uint32_t>(number), d = static_cast<std::uint32_t>(divisor);
    number = n / d;
    return n % d;
  }
  const std::int64_t rest = number % divisor;
  number /= divisor;
  return rest;
}

/// Sets the coordinates along axes `first` to `last` from an index that counts the last one fastest.
__device__ void unpack(const OperandLayout& layout, int first, int last, std::int64_t index, Place& p) {
  for (int axis = last; axis >= first; --axis) p.at[axis] = divide(index, layout.extent[axis]);
}
__device__ Place coordinates(const OperandLayout& layout, std::int64_t index) {
  Place p{};
  unpack(layout, 0, kOperandAxes - 1, index, p);
  return p;
}

/// -1, 0 or 1.
__device__ int number_of(const ExactSums& s, Operand operand, const Place& p) {
  const std::uint32_t hash = hash_of(place_in(s.layout[operand], p), operand);
  if (operand == s.sparse) {
    unsigned int ends = 0;
    for (int axis = 0; axis < kOperandAxes; ++axis) {
      if (!s.summed[axis]) continue;
      std::int64_t quotient = p.at[axis];
      const std::int64_t at = divide(quotient, s.period[axis]);
      if (at == 0 || at == s.period[axis] - 1) ends |= 1U << static_cast<unsigned int>(axis);
    }
    if (hash >> 1 > s.limit[ends]) return 0;
  }
  return (hash & 1U) != 0 ? 1 : -1;
}

template <typename T>
__global__ void __launch_bounds__(kThreads) write_operand_kernel(ExactSums s, Operand operand, T* to) {
  const OperandLayout& layout = s.layout[operand];
  const std::int64_t count = count_of(layout), step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += step) {
    const Place p = coordinates(layout, i);
    to[place_in(layout, p)] = narrowed<T>(static_cast<float>(number_of(s, operand, p)));
  }
}

__device__ int bias_of(std::int64_t channel) { return (hash_of(channel, kBiasSeed) & 1U) != 0 ? 1 : -1; }

template <typename T>
__global__ void __launch_bounds__(kThreads) write_bias_kernel(std::int64_t count, T* to) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step)
    to[i] = narrowed<T>(static_cast<float>(bias_of(i)));
}

/// The first elements are the corners. The others lie, along each axis, at one of its ends, next to one, or,
/// in half of the cases, anywhere.
__device__ Place checked_element(const OperandLayout& layout, int element) {
  Place p{};
  int corner = element;  // a bit per axis; 0 when all are used
  for (int axis = 0; axis < kOperandAxes; ++axis) {
    if (layout.extent[axis] == 1) continue;
    p.at[axis] = (corner & 1) != 0 ? layout.extent[axis] - 1 : 0;
    corner >>= 1;
  }
  if (corner == 0) return p;
  for (int axis = 0; axis < kOperandAxes; ++axis) {
    const std::int64_t last = layout.extent[axis] - 1;
    const std::uint32_t hash = hash_of(element * kOperandAxes + axis, kElementSeed);
    const std::int64_t near = (hash & 4U) != 0 && last > 0 ? 1 : 0;
    if ((hash & 1U) != 0)
      p.at[axis] = static_cast<std::int64_t>(hash >> 3) % layout.extent[axis];
    else
      p.at[axis] = (hash & 2U) != 0 ? last - near : near;
  }
  return p;
}
__device__ Place place_of(const OperandLayout& layout, int element) {
  return count_of(layout) <= kCheckedElements ? coordinates(layout, element)
                                              : checked_element(layout, element);
}

/// Channels of a group.
struct Group {
  std::int64_t in, out;
  __device__ explicit Group(const ExactSums& s)
      : in(s.layout[ExactSums::kernel].extent[4]), out(s.layout[ExactSums::kernel].extent[0] / s.groups) {}
};

/// The input position that output `out` reads through kernel position `k`; false outside.
__device__ bool input_of(const ExactSums& s, const Place& y, const Place& kernel, Place& x) {
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t at =
        y.at[axis + 1] * s.stride[axis] - s.padding[axis] + kernel.at[axis + 1] * s.dilation[axis];
    if (at < 0 || at >= s.layout[ExactSums::x].extent[axis + 1]) return false;
    x.at[axis + 1] = at;
  }
  return true;
}
/// The output position that reads input `x` through kernel position `k`; false if there is none.
__device__ bool output_of(const ExactSums& s, const Place& x, const Place& kernel, Place& y) {
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t at = x.at[axis + 1] + s.padding[axis] - kernel.at[axis + 1] * s.dilation[axis];
    if (at < 0 || at % s.stride[axis] != 0 || at / s.stride[axis] >= s.layout[ExactSums::y].extent[axis + 1])
      return false;
    y.at[axis + 1] = at / s.stride[axis];
  }
  return true;
}

/// The product of the other two operands' numbers in one term of an element's sum, which runs over kernel
/// positions and channels of the group, or over samples and positions.
__device__ int product_of(const ExactSums& s, const Group& group, const Place& element, std::int64_t term) {
  Place x{}, kernel{}, y{};
  switch (s.written) {
    case ExactSums::y:
      y = element;
      kernel.at[0] = y.at[4];
      kernel.at[4] = divide(term, group.in);
      unpack(s.layout[ExactSums::kernel], 1, 3, term, kernel);
      if (!input_of(s, y, kernel, x)) return 0;
      x.at[0] = y.at[0];
      x.at[4] = y.at[4] / group.out * group.in + kernel.at[4];
      return number_of(s, ExactSums::x, x) * number_of(s, ExactSums::kernel, kernel);
    case ExactSums::x:
      x = element;
      kernel.at[0] = x.at[4] / group.in * group.out + divide(term, group.out);
      kernel.at[4] = x.at[4] % group.in;
      unpack(s.layout[ExactSums::kernel], 1, 3, term, kernel);
      if (!output_of(s, x, kernel, y)) return 0;
      y.at[0] = x.at[0];
      y.at[4] = kernel.at[0];
      return number_of(s, ExactSums::y, y) * number_of(s, ExactSums::kernel, kernel);
    default:
      kernel = element;
      y.at[4] = kernel.at[0];
      unpack(s.layout[ExactSums::y], 0, 3, term, y);
      if (!input_of(s, y, kernel, x)) return 0;
      x.at[0] = y.at[0];
      x.at[4] = kernel.at[0] / group.out * group.in + kernel.at[4];
      return number_of(s, ExactSums::x, x) * number_of(s, ExactSums::y, y);
  }
}

/// A row of blocks per element. Sums are integers: any order of additions gives the same.
__global__ void __launch_bounds__(kThreads)
    sum_elements_kernel(ExactSums s, std::int64_t count, CheckedSums* found) {
  const auto element = static_cast<int>(blockIdx.y);
  const Place p = place_of(s.layout[s.written], element);
  const Group group(s);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  int sum = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step)
    sum += product_of(s, group, p, i);
  if (sum != 0) atomicAdd(&found->sums[element], sum);
}

/// One block, a thread per element.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    compare_elements_kernel(ExactSums s, int elements, const T* result, CheckedSums* found) {
  for (auto element = static_cast<int>(threadIdx.x); element < elements; element += kThreads) {
    const Place p = place_of(s.layout[s.written], element);
    const int sum = found->sums[element] + (s.bias ? bias_of(p.at[4]) : 0);
    const std::int64_t place = place_in(s.layout[s.written], p);
    found->elements[element] = {place, widened(narrowed<T>(static_cast<float>(sum))), widened(result[place])};
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    scan_result_kernel(std::int64_t count, const T* result, std::int64_t guard_bytes, CheckedSums* found) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads,
                     first = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  unsigned long long broken = 0, inexact = 0, past_end = 0;
  const float most = sizeof(T) == sizeof(float) ? kRoundingError : 0.0F;
  for (std::int64_t i = first; i < count; i += step) {
    const float value = widened(result[i]), error = fabsf(value - rintf(value));
    if (!(error <= most))
      ++broken;  // NaN, too
    else if (error != 0.0F)
      ++inexact;
  }
  const auto* const guard = reinterpret_cast<const unsigned char*>(result + count);
  for (std::int64_t i = first; i < guard_bytes; i += step)
    if (guard[i] != 0xFF) ++past_end;
  if (broken != 0) atomicAdd(&found->broken, broken);
  if (inexact != 0) atomicAdd(&found->inexact, inexact);
  if (past_end != 0) atomicAdd(&found->written_past_end, past_end);
}

constexpr std::int64_t kTermsPerThread = 64;  ///< about: a sum of millions of terms is shared by many blocks

std::int64_t terms_of(const ExactSums& s) {
  const OperandLayout &kernel = s.layout[ExactSums::kernel], &y = s.layout[ExactSums::y];
  return s.written == ExactSums::y   ? positions_of(kernel) * kernel.extent[4]
         : s.written == ExactSums::x ? positions_of(kernel) * (kernel.extent[0] / s.groups)
                                     : y.extent[0] * positions_of(y);
}

}  // namespace

void write_operand(cudaStream_t stream, const ExactSums& sums, ExactSums::Operand operand, Data to) {
  Lane lane;
  lane.stream = stream;
  const std::int64_t count = count_of(sums.layout[operand]);
  with_type(to.type(), [&]<typename T>(T) {
    launch(lane, "write_operand", write_operand_kernel<T>, blocks_for(count), kThreads, sums, operand,
           to.as<T>());
  });
}

void write_bias(cudaStream_t stream, std::int64_t count, Data to) {
  Lane lane;
  lane.stream = stream;
  with_type(to.type(), [&]<typename T>(T) {
    launch(lane, "write_bias", write_bias_kernel<T>, blocks_for(count), kThreads, count, to.as<T>());
  });
}

void check_sums(cudaStream_t stream, const ExactSums& sums, ConstData result, std::int64_t guard_bytes,
                CheckedSums* found) {
  Lane lane;
  lane.stream = stream;
  check(cudaMemsetAsync(found, 0, sizeof *found, stream), "cudaMemsetAsync");
  const std::int64_t count = count_of(sums.layout[sums.written]), terms = terms_of(sums);
  const int elements = count < kCheckedElements ? static_cast<int>(count) : kCheckedElements;
  const unsigned int threads = terms < kThreads ? 32 : kThreads;
  launch(lane, "sum_elements", sum_elements_kernel,
         dim3(blocks_for(terms / kTermsPerThread), static_cast<unsigned int>(elements)), threads, sums, terms,
         found);
  with_type(result.type(), [&]<typename T>(T) {
    launch(lane, "compare_elements", compare_elements_kernel<T>, 1, kThreads, sums, elements, result.as<T>(),
           found);
    launch(lane, "scan_result", scan_result_kernel<T>, blocks_for(count), kThreads, count, result.as<T>(),
           guard_bytes, found);
  });
}

}  // namespace lockstep::cuda
