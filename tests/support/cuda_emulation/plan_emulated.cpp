// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Replaces cudnn_cuda.cpp on the emulated GPU: plans are plain loops over cuDNN's layouts, queued on the
// stream. They write all of their workspace.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "double_sums.h"
#include "emulated_engines.h"
#include "kernels/cuda_launch.h"
#include "kernels/cudnn_cuda.h"
#include "kernels/factory_cuda.h"
#include "kernels/plan_check_cuda.h"

namespace lockstep::cuda {
namespace {

using emulation::Defect;
using Pass = PlanSpec::Pass;

constexpr std::size_t kWorkspaceBytes = 1024;  // so that a lane with too little scratch is detected

std::int64_t positions(const PlanSpec::Axes& axes) { return axes[0] * axes[1] * axes[2]; }
PlanSpec::Axes position(std::int64_t index, const PlanSpec::Axes& axes) {
  return {index / (axes[1] * axes[2]), index / axes[2] % axes[1], index % axes[2]};
}

/// Calls f(first index in x, kernel position, first index in y) for every pair of an output position and an
/// input position that it reads.
template <typename F>
void for_each_pair(const PlanSpec& s, const F& f) {
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t out = 0; out < positions(s.out); ++out)
      for (std::int64_t k = 0; k < positions(s.kernel); ++k) {
        const PlanSpec::Axes to = position(out, s.out), window = position(k, s.kernel);
        std::int64_t from = n;
        bool inside = true;
        for (std::size_t axis = 0; axis < 3; ++axis) {
          const std::int64_t at =
              to[axis] * s.stride[axis] - s.padding[axis] + window[axis] * s.dilation[axis];
          inside = inside && at >= 0 && at < s.in[axis];
          from = from * s.in[axis] + at;
        }
        if (inside) f(from * s.in_c, k, (n * positions(s.out) + out) * s.out_c);
      }
}

Doubles transposed(std::int64_t rows, std::int64_t columns, const Doubles& from) {
  Doubles to(from.size());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      to[static_cast<std::size_t>(c * rows + r)] = from[static_cast<std::size_t>(r * columns + c)];
  return to;
}

/// The kernel is kernel x in/group x out here, so that the innermost loop runs over sums side by side.
Doubles forward(const PlanSpec& s, const Doubles& x, const Doubles& kernel) {
  const std::int64_t group_in = s.in_c / s.groups, group_out = s.out_c / s.groups;
  Doubles sums(static_cast<std::size_t>(s.n * positions(s.out) * s.out_c));
  for_each_pair(s, [&](std::int64_t in, std::int64_t k, std::int64_t out) {
    for (std::int64_t c = 0; c < s.in_c; ++c) {
      const std::int64_t first = c / group_in * group_out;
      add_product(x[static_cast<std::size_t>(in + c)],
                  kernel.data() + (k * group_in + c % group_in) * s.out_c + first, group_out,
                  sums.data() + out + first);
    }
  });
  return sums;
}
Doubles backward_data(const PlanSpec& s, const Doubles& kernel, const Doubles& y) {
  const std::int64_t group_in = s.in_c / s.groups, group_out = s.out_c / s.groups;
  Doubles sums(static_cast<std::size_t>(s.n * positions(s.in) * s.in_c));
  for_each_pair(s, [&](std::int64_t in, std::int64_t k, std::int64_t out) {
    for (std::int64_t o = 0; o < s.out_c; ++o)
      add_product(y[static_cast<std::size_t>(out + o)],
                  kernel.data() + (o * positions(s.kernel) + k) * group_in, group_in,
                  sums.data() + in + o / group_out * group_in);
  });
  return sums;
}
Doubles backward_weights(const PlanSpec& s, const Doubles& x, const Doubles& y) {
  const std::int64_t group_in = s.in_c / s.groups, group_out = s.out_c / s.groups;
  Doubles sums(static_cast<std::size_t>(positions(s.kernel) * group_in * s.out_c));
  for_each_pair(s, [&](std::int64_t in, std::int64_t k, std::int64_t out) {
    for (std::int64_t c = 0; c < s.in_c; ++c) {
      const std::int64_t first = c / group_in * group_out;
      add_product(x[static_cast<std::size_t>(in + c)], y.data() + out + first, group_out,
                  sums.data() + (k * group_in + c % group_in) * s.out_c + first);
    }
  });
  return transposed(positions(s.kernel) * group_in, s.out_c, sums);
}

/// Clears the last eighth of an operand, hence of the inner dimension if that is its first axis.
void lose_part(Doubles& operand) {
  std::fill(operand.end() - static_cast<std::ptrdiff_t>((operand.size() + 7) / 8), operand.end(), 0.0);
}

bool is_uneven(const PlanSpec& s) {
  int axes = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) axes += s.padding[axis] != s.padding_after[axis] ? 1 : 0;
  return axes == 1;
}

template <typename T>
void compute(Defect defect, const PlanSpec& s, void* x, void* kernel, void* y) {
  const std::int64_t count_x = s.n * positions(s.in) * s.in_c, count_y = s.n * positions(s.out) * s.out_c,
                     count_kernel = s.out_c * positions(s.kernel) * s.in_c / s.groups;
  const auto* const from_x = static_cast<const T*>(x);
  const auto* const from_kernel = static_cast<const T*>(kernel);
  const auto* const from_y = static_cast<const T*>(y);
  const bool loses = defect == Defect::lost_part;
  Doubles sums;
  void* to = nullptr;
  std::int64_t width = 1, channels = s.in_c;  // of the result
  switch (s.pass) {
    case Pass::forward: {
      Doubles weights = transposed(s.out_c, count_kernel / s.out_c, doubles(from_kernel, count_kernel));
      if (loses) lose_part(weights);
      sums = forward(s, doubles(from_x, count_x), weights);
      to = y, width = s.out[2], channels = s.out_c;
      break;
    }
    case Pass::backward_data: {
      Doubles dy = doubles(from_y, count_y);
      if (loses)
        for (std::size_t i = 0; i < dy.size(); ++i)
          if (static_cast<std::int64_t>(i) % s.out_c >= s.out_c - (s.out_c + 7) / 8) dy[i] = 0;
      sums = backward_data(s, doubles(from_kernel, count_kernel), dy);
      to = x, width = s.in[2];
      break;
    }
    case Pass::backward_weights: {
      Doubles dy = doubles(from_y, count_y);
      if (loses) lose_part(dy);
      sums = backward_weights(s, doubles(from_x, count_x), dy);
      to = kernel, width = s.kernel[2], channels = s.in_c / s.groups;
      break;
    }
  }
  if (defect == Defect::uneven_padding && is_uneven(s)) std::reverse(sums.begin(), sums.end());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const bool last = static_cast<std::int64_t>(i) / channels % width == width - 1;
    if (defect == Defect::unwritten && last) continue;
    if (defect == Defect::edge_column && last) sums[i] += 1;
    if (defect == Defect::rounded) sums[i] *= 1 + 0x1p-20;
    if (defect == Defect::coarse) sums[i] = coarse(sums[i]);
    if (defect == Defect::accumulates) sums[i] += static_cast<double>(to_float(static_cast<const T*>(to)[i]));
    static_cast<T*>(to)[i] = from_float<T>(static_cast<float>(sums[i]));
  }
}

void run_loops(const emulation::Engine& engine, const PlanSpec& spec, cudaStream_t stream, const void* x,
               const void* kernel, const void* y, void* workspace) {
  for (const void* address : {x, kernel, y})
    LOCKSTEP_CHECK(reinterpret_cast<std::uintptr_t>(address) % 16 == 0, "an operand is not aligned");
  check(emulation::enqueue(stream,
                           [engine, spec, x = const_cast<void*>(x), kernel = const_cast<void*>(kernel),
                            y = const_cast<void*>(y), workspace] {
                             emulation::pretend(engine);
                             std::memset(workspace, 0xFF, kWorkspaceBytes);
                             with_type(spec.type,
                                       [&]<typename T>(T) { compute<T>(engine.defect, spec, x, kernel, y); });
                           }),
        "an emulated convolution");
}

class EmulatedPlan final : public Plan {
 public:
  EmulatedPlan(const PlanSpec& spec, emulation::Engine engine) : spec_(spec), engine_(std::move(engine)) {}
  void note() const { note_algorithm(spec_.describe(), engine_.name); }
  std::size_t workspace_bytes() const override { return kWorkspaceBytes; }
  bool on_tensor_cores() const override { return spec_.type != DType::f32; }
  void run(cudaStream_t stream, const void* x, const void* kernel, const void* y,
           void* workspace) const override {
    run_loops(engine_, spec_, stream, x, kernel, y, workspace);
  }

 private:
  PlanSpec spec_;
  emulation::Engine engine_;
};

/// The engine's RunConvolution.
auto run_of(const emulation::Engine& engine, const PlanSpec& spec) {
  return [&](cudaStream_t stream, const void* x, const void* kernel, const void* y, void* workspace) {
    run_loops(engine, spec, stream, x, kernel, y, workspace);
  };
}

}  // namespace

std::shared_ptr<const Plan> plan_for(const PlanSpec& spec, bool check) {
  static std::mutex mutex;
  static std::map<std::tuple<bool, std::string, std::string>, std::shared_ptr<const EmulatedPlan>> plans;
  std::string list;  // tests change it
  for (const emulation::Engine& engine : emulation::engines()) list += engine.name + ",";
  const std::lock_guard lock(mutex);
  const std::string library = convolution_library_version(), what = spec.describe();
  const auto error = [&](const emulation::Engine& engine) {
    return error_of_plan(spec, kWorkspaceBytes, run_of(engine, spec));
  };
  const std::string measured = emulation::measured_engine(
      library, what, check, error, [&](const emulation::Engine& engine, double best) {
        return seconds_of_plan(spec, kWorkspaceBytes, best, run_of(engine, spec));
      });
  std::shared_ptr<const EmulatedPlan>& plan = plans[{check, list + measured, what}];
  if (!plan)
    plan =
        std::make_shared<EmulatedPlan>(spec, emulation::choose_engine(library, what, measured, check, error));
  plan->note();
  return plan;
}

std::string convolution_library_version() { return "emulated convolutions" + emulation::version(); }

}  // namespace lockstep::cuda
