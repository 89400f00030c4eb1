// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/gradient_unscaler.h"

#include <algorithm>

#include "comm/flight_recorder.h"
#include "core/trace.h"
#include "train/step_sums.h"

namespace lockstep {

GradientUnscaler::GradientUnscaler(const ExecutorContext& context, Communicator& control, StepSums& sums)
    : context_(context),
      control_(control),
      sums_(sums),
      done_(context.device),
      not_finite_(Buffer::pinned(context.device,
                                 static_cast<std::size_t>(context.pool.size()) * sizeof(std::int32_t))),
      finite_(static_cast<std::size_t>(control.size())) {}

void GradientUnscaler::run() {
  const Traced traced("update", "taking off the loss scale");
  const std::span<std::int32_t> flags = not_finite_.as<std::int32_t>();
  std::ranges::fill(flags, 0);
  const auto factor = static_cast<float>(1 / scale_);
  context_.pool.run([&](int t) {
    const Lane& lane = context_.lanes[static_cast<std::size_t>(t)];
    std::int32_t* const flag = &flags[static_cast<std::size_t>(t)];
    const UpdateKernels& kernels = context_.kernels.update;
    sums_.for_own_parts(t, [&](Range part) {
      kernels.unscale(lane, part.size(), factor, sums_.gradients() + part.first, flag);
    });
    for (const VariableId id : context_.variables.sparse()) {
      const Variable& table = context_.variables[id];
      const SparseRows& rows = sums_.sparse()->total_on_device(table.sparse_index);
      const Range own = part_of(context_.device.is_host() ? *rows.count : rows.most, t, context_.pool.size());
      kernels.unscale_rows(lane, rows, own.first, own.last, table.shape.num_elements() / table.shape[0],
                           factor, flag);
    }
  });
  done_.record(context_.stream());
}

bool GradientUnscaler::are_finite() {
  if (!context_.device.is_host()) {
    const RecordedCall waiting("the GPU's gradients, for the loss scale", 0);
    done_.wait();
  }
  const std::span<const std::int32_t> flags = not_finite_.as<std::int32_t>();
  return agreed(std::ranges::all_of(flags, [](std::int32_t flag) { return flag == 0; }));
}

/// Whether all ranks have finite parts. All ranks have the same sums where they do not share the update.
bool GradientUnscaler::agreed(bool finite) {
  if (sums_.ownership() == nullptr) return finite;
  const char mine = finite ? 1 : 0;
  control_.allgather(&mine, sizeof mine, finite_.data(), "are the gradients finite");
  return std::ranges::all_of(finite_, [](char rank) { return rank != 0; });
}

}  // namespace lockstep
