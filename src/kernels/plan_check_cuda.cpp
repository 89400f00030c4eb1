// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/plan_check_cuda.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>

#include "core/error.h"
#include "kernels/chosen_algorithms_cuda.h"
#include "kernels/cuda_launch.h"
#include "kernels/exact_sums_cuda.h"
#include "kernels/time_cuda.h"

namespace lockstep::cuda {

namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::int64_t kGuardBytes = 256;  ///< after the result

std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// A device's memory for checks, and their stream. Both are never destroyed, since CUDA may be gone before
/// static objects.
struct CheckMemory {
  char* block = nullptr;
  std::size_t bytes = 0;
  cudaStream_t stream = nullptr;

  void release() {
    if (block != nullptr) check(cudaFree(block), "cudaFree");
    block = nullptr;
    bytes = 0;
  }
  void grow(std::size_t wanted, const std::string& what) {
    if (stream == nullptr)
      check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    if (wanted <= bytes) return;
    release();
    if (cudaMalloc(&block, wanted) != cudaSuccess) {
      (void)cudaGetLastError();
      block = nullptr;
      throw Error(ErrorKind::device,
                  fmt::format("the check of {} needs {} MiB of GPU memory, and there is less", what,
                              (wanted >> 20) + 1),
                  {}, "Use smaller shards, or leave the check out with gpu.check_plans=false.");
    }
    bytes = wanted;
  }
};
struct AllMemory {
  std::mutex mutex;
  std::map<int, CheckMemory> by_device;
};
AllMemory& all_memory() {
  static auto* one = new AllMemory;
  return *one;
}

std::int64_t count_of(const OperandLayout& layout) {
  std::int64_t count = 1;
  for (const std::int64_t extent : layout.extent) count *= extent;
  return count;
}

/// The largest number of terms of a sum that are not 0. A result of 16 bits holds whole numbers up to 256
/// (bfloat16) or 2,048 (float16) exactly, and a float32 sum of any order up to 2^24. The number of terms
/// varies around this by chance, and bias adds to it.
double most_terms(DType result) {
  return result == DType::bf16 ? 128 : result == DType::f16 ? 1024 : 1 << 22;
}

/// Sets ExactSums::limit. The interior of what a sum runs over, and each of its faces, edges and corners,
/// have the same number of terms in every sum, if they are large enough. So one lost face of one number in
/// width shows as well as a lost part of the interior.
void limit_terms(ExactSums& s, DType result) {
  int num_axes = 0;
  for (int axis = 0; axis < kOperandAxes; ++axis) num_axes += s.summed[axis] && s.period[axis] > 1 ? 1 : 0;
  const double share = most_terms(result) / (1 << num_axes);
  for (unsigned int ends = 0; ends < std::size(s.limit); ++ends) {
    double members = 1;
    for (unsigned int axis = 0; axis < kOperandAxes; ++axis) {
      if (!s.summed[axis]) continue;
      const std::int64_t at_ends = std::min<std::int64_t>(2, s.period[axis]);
      members *= static_cast<double>((ends >> axis & 1U) != 0 ? at_ends : s.period[axis] - at_ends);
    }
    const double kept = members <= share ? 1 : share / members;
    s.limit[ends] = static_cast<std::uint32_t>(std::floor(kept * 0x7FFFFFFF));
  }
}

/// Channels last.
OperandLayout packed(std::int64_t outer, const PlanSpec::Axes& space, std::int64_t channels) {
  OperandLayout layout{{outer, space[0], space[1], space[2], channels}, {}};
  std::int64_t stride = 1;
  for (int axis = kOperandAxes - 1; axis >= 0; --axis) {
    layout.stride[axis] = stride;
    stride *= layout.extent[axis];
  }
  return layout;
}

ExactSums sums_of(const PlanSpec& spec) {
  using Pass = PlanSpec::Pass;
  ExactSums s;
  s.written = spec.pass == Pass::forward         ? ExactSums::y
              : spec.pass == Pass::backward_data ? ExactSums::x
                                                 : ExactSums::kernel;
  s.layout[ExactSums::x] = packed(spec.n, spec.in, spec.in_c);
  s.layout[ExactSums::kernel] = packed(spec.out_c, spec.kernel, spec.in_c / spec.groups);
  s.layout[ExactSums::y] = packed(spec.n, spec.out, spec.out_c);
  s.groups = spec.groups;
  std::ranges::copy(spec.padding, s.padding);
  std::ranges::copy(spec.stride, s.stride);
  std::ranges::copy(spec.dilation, s.dilation);
  s.sparse = s.written == ExactSums::kernel ? ExactSums::y : ExactSums::kernel;
  for (int axis = 0; axis < kOperandAxes; ++axis) {
    s.summed[axis] = s.written == ExactSums::y ? axis > 0 : axis < kOperandAxes - 1;
    s.period[axis] = s.layout[s.sparse].extent[axis];
  }
  if (s.written == ExactSums::x) s.period[0] /= spec.groups;
  limit_terms(s, spec.type);
  return s;
}

ExactSums sums_of(const ProductShape& shape) {
  const auto matrix = [](std::int64_t rows, std::int64_t columns, bool rows_adjacent) {
    return OperandLayout{{rows, 1, 1, 1, columns},
                         {rows_adjacent ? 1 : columns, 0, 0, 0, rows_adjacent ? rows : 1}};
  };
  ExactSums s;
  s.layout[ExactSums::x] = matrix(shape.n, shape.k, shape.transposed_b);
  s.layout[ExactSums::kernel] = matrix(shape.m, shape.k, !shape.transposed_a);
  s.layout[ExactSums::y] = matrix(shape.n, shape.m, false);
  std::ranges::fill(s.padding, 0);
  std::ranges::fill(s.stride, 1);
  std::ranges::fill(s.dilation, 1);
  s.bias = shape.bias;
  for (int axis = 0; axis < kOperandAxes; ++axis) {
    s.summed[axis] = axis == kOperandAxes - 1;
    s.period[axis] = s.layout[s.sparse].extent[axis];
  }
  limit_terms(s, shape.to);
  return s;
}

PlanError error_in(const CheckedSums& found, std::int64_t count, DType type) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  const float most = type == DType::f32 ? kRoundingError : 0;
  const auto is_wrong = [&](const CheckedSums::Element& e) {
    return !(std::abs(e.actual - e.expected) <= most);
  };
  if (const auto wrong = std::ranges::count_if(found.elements, is_wrong); wrong > 0) {
    const CheckedSums::Element& first = *std::ranges::find_if(found.elements, is_wrong);
    add(fmt::format("{} of {} checked numbers are wrong (number {} is {}, not {})", wrong,
                    std::min<std::int64_t>(count, kCheckedElements), first.place, first.actual,
                    first.expected));
  }
  if (found.broken > 0)
    add(fmt::format("{} of {} numbers are not written or not whole", found.broken, count));
  if (found.written_past_end > 0)
    add(fmt::format("{} bytes after the result are overwritten", found.written_past_end));
  if (!text.empty() || found.inexact == 0) return {text};
  return {fmt::format("{} of {} numbers are not whole, but for rounding errors", found.inexact, count), true};
}

/// An operand whose address is a multiple of `alignment` and of no higher power of two below kAlignment.
struct Piece {
  std::size_t bytes = 0, alignment = kAlignment;
};

/// What a plan is run on.
struct Problem {
  ExactSums sums;
  DType types[3];
  DType bias_type;
  std::array<Piece, 5> pieces;  ///< x, kernel, y, the bias and the workspace
  std::string what;

  std::size_t written() const { return static_cast<std::size_t>(sums.written); }
};

std::size_t bytes_of(const OperandLayout& layout, DType type) {
  return static_cast<std::size_t>(count_of(layout)) * size_in_bytes(type);
}

Problem problem_of(const PlanSpec& spec, std::size_t workspace_bytes) {
  const DType type = spec.type;
  Problem p{sums_of(spec), {type, type, type}, type, {}, spec.describe()};
  for (std::size_t i = 0; i < 3; ++i) p.pieces[i].bytes = bytes_of(p.sums.layout[i], type);
  p.pieces[4].bytes = workspace_bytes;
  return p;
}

Problem problem_of(const ProductShape& shape, std::size_t workspace_bytes) {
  Problem p{sums_of(shape), {shape.from, shape.from, shape.to}, shape.to, {}, shape.describe()};
  p.pieces = {
      Piece{bytes_of(p.sums.layout[ExactSums::x], shape.from), shape.alignment},
      {bytes_of(p.sums.layout[ExactSums::kernel], shape.from), shape.alignment},
      {bytes_of(p.sums.layout[ExactSums::y], shape.to), std::max(shape.alignment, shape.bias_alignment())},
      {static_cast<std::size_t>(shape.m) * size_in_bytes(shape.to), shape.bias_alignment()},
      {workspace_bytes, kAlignment}};
  return p;
}

/// The operands of a problem in the device's memory for checks, which it holds.
class Operands {
 public:
  explicit Operands(const Problem& p) : lock_(all_memory().mutex), own_(memory()) {
    std::size_t bytes = aligned(sizeof(CheckedSums));
    for (const Piece& piece : p.pieces) bytes += aligned(piece.bytes) + 2 * kAlignment;
    own_.grow(bytes, p.what);
    char* next = own_.block + aligned(sizeof(CheckedSums));
    for (std::size_t i = 0; i < p.pieces.size(); ++i) {
      at_[i] = next + p.pieces[i].alignment % kAlignment;
      next += aligned(p.pieces[i].bytes) + 2 * kAlignment;
    }
    for (const auto operand : {ExactSums::x, ExactSums::kernel, ExactSums::y}) {
      const auto i = static_cast<std::size_t>(operand);
      if (operand == p.sums.written)
        check(cudaMemsetAsync(at_[i], 0xFF, p.pieces[i].bytes + kGuardBytes, own_.stream), "cudaMemsetAsync");
      else
        write_operand(own_.stream, p.sums, operand, {at_[i], p.types[i]});
    }
    if (p.sums.bias)
      write_bias(own_.stream, p.sums.layout[ExactSums::kernel].extent[0], {at_[3], p.bias_type});
  }
  cudaStream_t stream() const { return own_.stream; }
  const std::array<char*, 5>& at() const { return at_; }
  CheckedSums* found() const { return reinterpret_cast<CheckedSums*>(own_.block); }

 private:
  static CheckMemory& memory() {
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    return all_memory().by_device[device];
  }
  std::lock_guard<std::mutex> lock_;
  CheckMemory& own_;
  std::array<char*, 5> at_{};
};

/// `run` gets the operands' addresses.
using Run = FunctionRef<void(cudaStream_t, const std::array<char*, 5>&)>;

PlanError error_of(const Problem& p, Run run) {
  const Operands operands(p);
  run(operands.stream(), operands.at());
  const std::size_t i = p.written();
  check_sums(operands.stream(), p.sums, {operands.at()[i], p.types[i]}, kGuardBytes, operands.found());
  CheckedSums on_host;
  check(
      cudaMemcpyAsync(&on_host, operands.found(), sizeof on_host, cudaMemcpyDeviceToHost, operands.stream()),
      "cudaMemcpyAsync");
  check(cudaStreamSynchronize(operands.stream()), "the check of a plan");
  return error_in(on_host, count_of(p.sums.layout[i]), p.types[i]);
}

double seconds_of(const Problem& p, double best, Run run) {
  const Operands operands(p);
  return seconds_of_work(operands.stream(), best, [&] { run(operands.stream(), operands.at()); });
}

/// Calls f with a Run that executes the plan.
template <typename F>
auto with_run(const PlanSpec&, RunConvolution run, const F& f) {
  return f(
      [&](cudaStream_t stream, const std::array<char*, 5>& at) { run(stream, at[0], at[1], at[2], at[4]); });
}
template <typename F>
auto with_run(const ProductShape& shape, RunProduct run, const F& f) {
  return f([&](cudaStream_t stream, const std::array<char*, 5>& at) {
    run(stream, at[1], at[0], shape.bias ? at[3] : nullptr, at[2], at[4]);
  });
}

}  // namespace

PlanError error_of_plan(const PlanSpec& spec, std::size_t workspace_bytes, RunConvolution run) {
  return with_run(spec, run, [&](Run r) { return error_of(problem_of(spec, workspace_bytes), r); });
}
PlanError error_of_plan(const ProductShape& shape, std::size_t workspace_bytes, RunProduct run) {
  return with_run(shape, run, [&](Run r) { return error_of(problem_of(shape, workspace_bytes), r); });
}
double seconds_of_plan(const PlanSpec& spec, std::size_t workspace_bytes, double best, RunConvolution run) {
  return with_run(spec, run, [&](Run r) { return seconds_of(problem_of(spec, workspace_bytes), best, r); });
}
double seconds_of_plan(const ProductShape& shape, std::size_t workspace_bytes, double best, RunProduct run) {
  return with_run(shape, run, [&](Run r) { return seconds_of(problem_of(shape, workspace_bytes), best, r); });
}

bool is_right(const std::string& library, const std::string& operation, const std::string& algorithm,
              const PlanError& error) {
  if (error.text.empty()) return true;
  const auto note = error.inexact ? note_inexact_algorithm : note_wrong_algorithm;
  note(operation + ": " + algorithm + " of " + library + ": " + error.text);
  return error.inexact;
}

void free_check_memory() {
  AllMemory& memory = all_memory();
  const std::lock_guard lock(memory.mutex);
  if (memory.by_device.empty()) return;  // perhaps without a driver
  int before = 0;
  check(cudaGetDevice(&before), "cudaGetDevice");
  for (auto& [device, own] : memory.by_device) {
    check(cudaSetDevice(device), "cudaSetDevice");
    own.release();
  }
  check(cudaSetDevice(before), "cudaSetDevice");
}

}  // namespace lockstep::cuda
