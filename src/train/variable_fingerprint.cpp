// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/variable_fingerprint.h"

#include <algorithm>

#include "comm/flight_recorder.h"
#include "core/hash.h"
#include "core/range.h"
#include "core/trace.h"

namespace lockstep {

namespace {
/// What a thread of the CPU takes at a time; a GPU is fastest with all at once.
constexpr std::int64_t kPieceOnHost = std::int64_t{1} << 20;
}  // namespace

VariableFingerprint::VariableFingerprint(const ExecutorContext& context) : context_(context) {
  const auto cut = [&](const float* values, std::int64_t count) {
    const std::int64_t piece = context.device.is_host() ? kPieceOnHost : std::max(count, std::int64_t{1});
    for (std::int64_t at = 0; at < count; at += piece)
      pieces_.push_back({values + at, std::min(piece, count - at)});
  };
  cut(context.variables.trainable_address(), context.variables.trainable_elements());
  cut(context.variables.others_address(),
      static_cast<std::int64_t>(context.variables.others_bytes() / sizeof(float)));
  parts_ = Buffer::pinned(context.device, pieces_.size() * sizeof(Fingerprint));
}

VariableFingerprint::Result VariableFingerprint::take() {
  const Traced traced("comparing", "fingerprint of the variables");
  const std::span<Fingerprint> parts = parts_.as<Fingerprint>();
  const bool on_host = context_.device.is_host();
  const auto count = static_cast<std::int64_t>(pieces_.size());
  const auto take_range = [&](const Lane& lane, Range range) {
    for (std::int64_t i = range.first; i < range.last; ++i) {
      const auto piece = static_cast<std::size_t>(i);
      context_.kernels.fingerprint.fingerprint(lane, pieces_[piece].count, pieces_[piece].values,
                                               &parts[piece]);
    }
  };
  if (on_host) {
    context_.pool.run([&](int t) {
      take_range(context_.lanes[static_cast<std::size_t>(t)], part_of(count, t, context_.pool.size()));
    });
  } else {
    take_range(context_.lanes.front(), {0, count});
    const RecordedCall waiting("the GPU's fingerprint of the variables", 0);
    context_.device.synchronize(context_.lanes.front().stream);
  }
  return {hash64(parts.data(), parts.size_bytes()),
          std::ranges::none_of(parts, [](const Fingerprint& part) { return part.broken != 0; })};
}

}  // namespace lockstep
