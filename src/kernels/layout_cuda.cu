// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Strided copies on a GPU: one thread per element, or per 16 or 8 bytes of adjacent ones if both sides' runs
// allow it, in the order of the destination.
#include "kernels/layout.h"

#include <type_traits>

#include "core/data.h"
#include "kernels/cuda_launch.h"
#include "kernels/factory_cuda.h"

namespace lockstep::cuda {
namespace {

/// The unit that a thread copies: elements as words of 32 bits, or one 16-bit element.
template <int kBytes>
struct alignas(kBytes) Run {
  std::conditional_t<kBytes == 2, std::uint16_t, std::uint32_t> at[kBytes == 2 ? 1 : kBytes / 4];
};

/// Index is 32 bits wide if the number of elements and both sides' offsets fit, since 64-bit divisions are
/// slow.
template <typename Word, int kWords, typename Index>
__global__ void __launch_bounds__(kThreads)
    copy_kernel(StridedCopy copy, Index pieces, const Word* from, Word* to) {
  using Piece = Run<kWords * sizeof(Word)>;
  const Index stride = static_cast<Index>(gridDim.x) * kThreads;
  for (Index piece = static_cast<Index>(blockIdx.x) * kThreads + threadIdx.x; piece < pieces;
       piece += stride) {
    Index rest = piece * kWords, source = 0, target = 0;
    for (int axis = copy.rank - 1; axis > 0; --axis) {
      const Index extent = static_cast<Index>(copy.extents[axis]), index = rest % extent;
      rest /= extent;
      source += index * static_cast<Index>(copy.from_strides[axis]);
      target += index * static_cast<Index>(copy.to_strides[axis]);
    }
    source += rest * static_cast<Index>(copy.from_strides[0]);
    target += rest * static_cast<Index>(copy.to_strides[0]);
    *reinterpret_cast<Piece*>(to + target) = *reinterpret_cast<const Piece*>(from + source);
  }
}

template <int kWords, typename Word>
void launch_copy(const Lane& lane, const StridedCopy& copy, std::int64_t pieces, bool small, const Word* from,
                 Word* to) {
  if (small)
    launch(lane, "copy", copy_kernel<Word, kWords, std::uint32_t>, blocks_for(pieces), kThreads, copy,
           static_cast<std::uint32_t>(pieces), from, to);
  else
    launch(lane, "copy", copy_kernel<Word, kWords, std::uint64_t>, blocks_for(pieces), kThreads, copy,
           static_cast<std::uint64_t>(pieces), from, to);
}

/// Whether both sides consist of aligned runs of `bytes`, which are `words` elements.
bool in_runs(const StridedCopy& copy, std::size_t bytes, std::int64_t words, const void* from,
             const void* to) {
  const int last = copy.rank - 1;
  bool whole = (reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to)) % bytes == 0 &&
               copy.from_strides[last] == 1 && copy.to_strides[last] == 1 && copy.extents[last] % words == 0;
  for (int axis = 0; axis < last; ++axis)
    whole = whole && copy.from_strides[axis] % words == 0 && copy.to_strides[axis] % words == 0;
  return whole;
}

template <typename Word>
void strided_copy(const Lane& lane, const StridedCopy& given, std::int64_t samples, const Word* from,
                  Word* to) {
  StridedCopy copy = given;
  if (copy.rank == 0) return;
  copy.extents[0] = samples;
  std::int64_t count = 1, reach = 0;
  for (int axis = 0; axis < copy.rank; ++axis) {
    count *= copy.extents[axis];
    const std::int64_t from_stride = copy.from_strides[axis], to_stride = copy.to_strides[axis];
    reach += copy.extents[axis] * (from_stride > to_stride ? from_stride : to_stride);
  }
  if (count == 0) return;
  // An additional two grid strides must fit, too.
  const bool small = count < (std::int64_t{1} << 30) && reach < (std::int64_t{1} << 31);
  constexpr int kWidest = 16 / sizeof(Word);
  const auto runs_of = [&](int words) { return in_runs(copy, words * sizeof(Word), words, from, to); };
  if (runs_of(kWidest))
    launch_copy<kWidest>(lane, copy, count / kWidest, small, from, to);
  else if (kWidest > 4 && runs_of(4))
    launch_copy<4>(lane, copy, count / 4, small, from, to);
  else
    launch_copy<1>(lane, copy, count, small, from, to);
}

class Layout final : public LayoutKernels {
 public:
  void copy(const Lane& lane, const StridedCopy& copy, std::int64_t samples, ConstData from,
            Data to) const override {
    with_words(from, to, [&](const auto* f, auto* t) { strided_copy(lane, copy, samples, f, t); });
  }
};

}  // namespace

const LayoutKernels& layout_kernels() {
  static const Layout kernels;
  return kernels;
}

}  // namespace lockstep::cuda
