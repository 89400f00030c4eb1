// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "emulated_plan.h"

#include <cstring>
#include <map>
#include <mutex>

#include "core/error.h"
#include "core/half.h"
#include "kernels/cuda_launch.h"
#include "kernels/factory_cuda.h"

namespace lockstep {

namespace {

std::mutex mutex;
std::vector<PlannedConvolution>& planned() {
  static std::vector<PlannedConvolution> all;
  return all;
}

/// Calls f(index in x, index in the kernel, index in y) for every product; all lie channels last, the kernel
/// as out x kernel x in/groups.
template <typename F>
void for_each_product(const cuda::PlanSpec& s, const F& f) {
  const std::int64_t group_in = s.in_c / s.groups, group_out = s.out_c / s.groups;
  const auto& [od, oh, ow] = s.out;
  const auto& [kd, kh, kw] = s.kernel;
  const std::int64_t window = kd * kh * kw, positions = od * oh * ow;
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t out = 0; out < positions; ++out)
      for (std::int64_t k = 0; k < window; ++k) {
        const std::int64_t o[] = {out / (oh * ow), out / ow % oh, out % ow};
        const std::int64_t at[] = {k / (kh * kw), k / kw % kh, k % kw};
        std::int64_t x = n;
        bool inside = true;
        for (std::size_t axis = 0; axis < 3; ++axis) {
          const std::int64_t i = o[axis] * s.stride[axis] - s.padding[axis] + at[axis] * s.dilation[axis];
          inside = inside && i >= 0 && i < s.in[axis];
          x = x * s.in[axis] + i;
        }
        if (!inside) continue;
        for (std::int64_t c = 0; c < s.out_c; ++c)
          for (std::int64_t i = 0; i < group_in; ++i)
            f(x * s.in_c + c / group_out * group_in + i, (c * window + k) * group_in + i,
              (n * positions + out) * s.out_c + c);
      }
}

template <typename A, typename B>
double product(A a, B b) {
  return static_cast<double>(to_float(a)) * static_cast<double>(to_float(b));
}

/// `to` has the sums of the products of the other two.
template <typename T, typename Gradient>
void convolve(const cuda::PlanSpec& s, void* x, void* kernel, void* y) {
  using Pass = cuda::PlanSpec::Pass;
  const std::int64_t window = s.kernel[0] * s.kernel[1] * s.kernel[2];
  std::vector<double> sums(
      static_cast<std::size_t>(s.pass == Pass::forward ? s.n * s.out[0] * s.out[1] * s.out[2] * s.out_c
                               : s.pass == Pass::backward_data ? s.n * s.in[0] * s.in[1] * s.in[2] * s.in_c
                                                               : s.out_c * window * (s.in_c / s.groups)));
  auto *tx = static_cast<T*>(x), *tk = static_cast<T*>(kernel), *ty = static_cast<T*>(y);
  const auto store = [&](auto* to) {
    for (std::size_t i = 0; i < sums.size(); ++i)
      to[i] = from_float<std::remove_pointer_t<decltype(to)>>(static_cast<float>(sums[i]));
  };
  for_each_product(s, [&](std::int64_t ix, std::int64_t ik, std::int64_t iy) {
    if (s.pass == Pass::forward) sums[static_cast<std::size_t>(iy)] += product(tx[ix], tk[ik]);
    if (s.pass == Pass::backward_data) sums[static_cast<std::size_t>(ix)] += product(tk[ik], ty[iy]);
    if (s.pass == Pass::backward_weights) sums[static_cast<std::size_t>(ik)] += product(tx[ix], ty[iy]);
  });
  if (s.pass == Pass::forward) store(ty);
  if (s.pass == Pass::backward_data) store(tx);
  if (s.pass == Pass::backward_weights) store(static_cast<Gradient*>(kernel));
}

class EmulatedPlan final : public cuda::Plan {
 public:
  explicit EmulatedPlan(const cuda::PlanSpec& spec) : spec_(spec), facts_(plan_on_described_gpu(spec)) {}

  const PlanFacts& facts() const { return facts_; }
  std::size_t workspace_bytes() const override { return facts_.workspace_bytes; }

  void run(cudaStream_t stream, const void* x, const void* kernel, const void* y,
           void* workspace) const override {
    for (const void* address : {x, kernel, y})
      LOCKSTEP_CHECK(reinterpret_cast<std::uintptr_t>(address) % 16 == 0, "an operand is not aligned");
    cuda::check(emulation::enqueue(stream,
                                   [s = spec_, bytes = facts_.workspace_bytes, x = const_cast<void*>(x),
                                    kernel = const_cast<void*>(kernel), y = const_cast<void*>(y), workspace] {
                                     if (bytes > 0) std::memset(workspace, 0xFF, bytes);
                                     with_type(s.type, [&]<typename T>(T) {
                                       with_type(s.gradient,
                                                 [&]<typename G>(G) { convolve<T, G>(s, x, kernel, y); });
                                     });
                                     if (bytes > 0) std::memset(workspace, 0xFF, bytes);
                                   }),
                "an emulated plan");
  }

 private:
  cuda::PlanSpec spec_;
  PlanFacts facts_;
};

}  // namespace

std::vector<PlannedConvolution> planned_convolutions() {
  const std::lock_guard lock(mutex);
  return planned();
}

namespace cuda {

std::shared_ptr<const Plan> plan_for(const PlanSpec& spec) {
  static std::map<std::string, std::shared_ptr<const Plan>> plans;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const Plan>& plan = plans[spec.describe()];
  if (!plan) {
    const auto made = std::make_shared<EmulatedPlan>(spec);
    planned().push_back({spec, made->facts()});
    plan = made;
  }
  return plan;
}

std::string convolution_library_version() { return "emulated convolutions"; }

}  // namespace cuda

}  // namespace lockstep
