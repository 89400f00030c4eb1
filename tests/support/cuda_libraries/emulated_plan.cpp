// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "emulated_plan.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "core/error.h"
#include "core/half.h"
#include "kernels/chosen_algorithms_cuda.h"
#include "kernels/cuda_launch.h"
#include "kernels/factory_cuda.h"
#include "kernels/plan_check_cuda.h"

namespace lockstep {

namespace {

std::mutex mutex;
std::vector<PlannedConvolution>& planned() {
  static std::vector<PlannedConvolution> all;
  return all;
}

std::int64_t at(const PlannedOperand& o, std::int64_t n, std::int64_t c, const cuda::PlanSpec::Axes& space) {
  return n * o.n_stride + c * o.c_stride + space[0] * o.space_strides[0] + space[1] * o.space_strides[1] +
         space[2] * o.space_strides[2];
}
std::int64_t positions(const cuda::PlanSpec::Axes& space) { return space[0] * space[1] * space[2]; }
cuda::PlanSpec::Axes position(std::int64_t index, const cuda::PlanSpec::Axes& space) {
  return {index / (space[1] * space[2]), index / space[2] % space[1], index % space[2]};
}

/// Calls f(index in x, index in the kernel, index in y) for every product.
template <typename F>
void for_each_product(const PlannedOperation& p, const F& f) {
  const std::int64_t group_in = p.kernel.c, group_out = p.kernel.n / p.groups;
  for (std::int64_t n = 0; n < p.y.n; ++n)
    for (std::int64_t out = 0; out < positions(p.y.space); ++out)
      for (std::int64_t k = 0; k < positions(p.kernel.space); ++k) {
        const auto to = position(out, p.y.space), window = position(k, p.kernel.space);
        cuda::PlanSpec::Axes from{};
        bool inside = true;
        for (std::size_t axis = 0; axis < from.size(); ++axis) {
          from[axis] = to[axis] * p.stride[axis] - p.padding[axis] + window[axis] * p.dilation[axis];
          inside = inside && from[axis] >= 0 && from[axis] < p.x.space[axis];
        }
        if (!inside) continue;
        for (std::int64_t c = 0; c < p.y.c; ++c)
          for (std::int64_t i = 0; i < group_in; ++i)
            f(at(p.x, n, c / group_out * group_in + i, from), at(p.kernel, c, i, window), at(p.y, n, c, to));
      }
}

template <typename A, typename B>
double product(A a, B b) {
  return static_cast<double>(to_float(a)) * static_cast<double>(to_float(b));
}

/// A defect of cuDNN 9.19, seen on an H100: a float32 gradient of a 2-D kernel was wrong from its first
/// number on in two tests. They are those of all the tests whose plan is engine 1 with padding that differs
/// between the sides of one axis only.
bool is_computed_wrongly(const PlannedOperation& p, std::int64_t engine) {
  const auto differs = [&](std::size_t axis) { return p.padding[axis] != p.padding_after[axis]; };
  return p.pass == cuda::PlanSpec::Pass::backward_weights && p.x.type == DType::f32 && engine == 1 &&
         p.x.space[0] == 1 && differs(1) != differs(2);
}

/// Writes the sums of products of the other two operands, of type T, to `written`.
template <typename T, typename To>
void convolve(const PlannedOperation& p, bool wrongly, void* x, void* kernel, void* y) {
  using Pass = cuda::PlanSpec::Pass;
  const PlannedOperand& written = p.pass == Pass::forward         ? p.y
                                  : p.pass == Pass::backward_data ? p.x
                                                                  : p.kernel;
  std::vector<double> sums(static_cast<std::size_t>(written.n * written.c * positions(written.space)));
  const auto *tx = static_cast<const T*>(x), *tk = static_cast<const T*>(kernel),
             *ty = static_cast<const T*>(y);
  for_each_product(p, [&](std::int64_t ix, std::int64_t ik, std::int64_t iy) {
    if (p.pass == Pass::forward) sums.at(static_cast<std::size_t>(iy)) += product(tx[ix], tk[ik]);
    if (p.pass == Pass::backward_data) sums.at(static_cast<std::size_t>(ix)) += product(tk[ik], ty[iy]);
    if (p.pass == Pass::backward_weights) sums.at(static_cast<std::size_t>(ik)) += product(tx[ix], ty[iy]);
  });
  if (wrongly) std::ranges::reverse(sums);
  auto* to = static_cast<To*>(p.pass == Pass::forward ? y : p.pass == Pass::backward_data ? x : kernel);
  for (std::size_t i = 0; i < sums.size(); ++i) to[i] = from_float<To>(static_cast<float>(sums[i]));
}

void run_plan(const PlanFacts& facts, cudaStream_t stream, const void* x, const void* kernel, const void* y,
              void* workspace) {
  using Pass = cuda::PlanSpec::Pass;
  for (const void* address : {x, kernel, y})
    LOCKSTEP_CHECK(reinterpret_cast<std::uintptr_t>(address) % 16 == 0, "an operand is not aligned");
  const PlannedOperation& p = facts.operation;
  const DType read = p.pass == Pass::forward ? p.x.type : p.y.type;
  const DType written = p.pass == Pass::forward         ? p.y.type
                        : p.pass == Pass::backward_data ? p.x.type
                                                        : p.kernel.type;
  cuda::check(emulation::enqueue(stream,
                                 [p, read, written, wrongly = is_computed_wrongly(p, facts.engine),
                                  bytes = facts.workspace_bytes, x = const_cast<void*>(x),
                                  kernel = const_cast<void*>(kernel), y = const_cast<void*>(y), workspace] {
                                   if (bytes > 0) std::memset(workspace, 0xFF, bytes);
                                   with_type(read, [&]<typename T>(T) {
                                     with_type(written, [&]<typename To>(To) {
                                       convolve<T, To>(p, wrongly, x, kernel, y);
                                     });
                                   });
                                   if (bytes > 0) std::memset(workspace, 0xFF, bytes);
                                 }),
              "an emulated plan");
}

/// Notes a plan that is not.
bool is_right(const cuda::PlanSpec& spec, const PlanFacts& facts) {
  const cuda::PlanError error =
      cuda::error_of_plan(spec, facts.workspace_bytes,
                          [&](cudaStream_t stream, const void* x, const void* kernel, const void* y,
                              void* workspace) { run_plan(facts, stream, x, kernel, y, workspace); });
  return cuda::is_right(cuda::convolution_library_version(), spec.describe(),
                        fmt::format("engine {}", facts.engine), error);
}

class EmulatedPlan final : public cuda::Plan {
 public:
  EmulatedPlan(const cuda::PlanSpec& spec, bool check)
      : facts_(plan_on_described_gpu(
            spec, [&](const PlanFacts& facts) { return !check || is_right(spec, facts); })) {}

  const PlanFacts& facts() const { return facts_; }
  std::size_t workspace_bytes() const override { return facts_.workspace_bytes; }
  bool on_tensor_cores() const override { return facts_.on_tensor_cores; }
  void run(cudaStream_t stream, const void* x, const void* kernel, const void* y,
           void* workspace) const override {
    run_plan(facts_, stream, x, kernel, y, workspace);
  }

 private:
  PlanFacts facts_;
};

}  // namespace

std::vector<PlannedConvolution> planned_convolutions() {
  const std::lock_guard lock(mutex);
  return planned();
}

namespace cuda {

std::shared_ptr<const Plan> plan_for(const PlanSpec& spec, bool check) {
  static std::map<std::pair<bool, std::string>, std::shared_ptr<const EmulatedPlan>> plans;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const EmulatedPlan>& plan = plans[{check, spec.describe()}];
  if (!plan) {
    plan = std::make_shared<EmulatedPlan>(spec, check);
    planned().push_back({spec, plan->facts()});
  }
  note_algorithm(spec.describe(), fmt::format("engine {}", plan->facts().engine));
  return plan;
}

std::string convolution_library_version() { return "emulated convolutions"; }

}  // namespace cuda

}  // namespace lockstep
