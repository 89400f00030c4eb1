// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/layer_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

namespace lockstep {

namespace {

struct Time {
  std::int64_t first_ns = 0, forward_ns = 0, backward_ns = 0;
};

}  // namespace

std::vector<DeviceTimes> layer_times(std::span<const ThreadTrace> threads, std::int64_t steps,
                                     const std::string& device) {
  std::map<std::string, Time> times;
  for (const ThreadTrace& thread : threads)
    for (const TraceSpan& span : thread.spans) {
      const bool forward = std::string_view(span.category) == "forward";
      if (!forward && std::string_view(span.category) != "backward") continue;
      const auto [at, is_new] = times.try_emplace(span.name.data());
      Time& time = at->second;
      time.first_ns = is_new ? span.begin_ns : std::min(time.first_ns, span.begin_ns);
      (forward ? time.forward_ns : time.backward_ns) += span.end_ns - span.begin_ns;
    }
  std::vector<std::pair<std::string, Time>> order(times.begin(), times.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second.first_ns < b.second.first_ns; });
  DeviceTimes result{.device = device};
  double now_us = 0;
  for (const auto& [name, time] : order) {
    const double scale = 1e-3 / static_cast<double>(std::max<std::int64_t>(steps, 1));
    const double forward = static_cast<double>(time.forward_ns) * scale,
                 backward = static_cast<double>(time.backward_ns) * scale;
    result.nodes.push_back({.node = name,
                            .label = fmt::format("forward {:.1f} us, backward {:.1f} us", forward, backward),
                            .begin_us = static_cast<std::int64_t>(now_us),
                            .end_us = static_cast<std::int64_t>(now_us + forward + backward)});
    now_us += forward + backward;
  }
  return {std::move(result)};
}

}  // namespace lockstep
