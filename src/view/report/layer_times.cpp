// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Times of layers from the newest profile of a run.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "view/report/network_view.h"
#include "view/trace/trace_profile.h"

namespace lockstep::report {

namespace {

constexpr std::size_t kSpanName = 47;  // characters that spans keep of a name (core/trace.h)

}  // namespace

void add_profile(NetworkView& network, const std::string& run_dir) {
  std::vector<TraceProfile> profiles;
  try {
    profiles = read_profiles(run_dir);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::config) return;  // there is none
    network.problem += fmt::format("{}No times of layers: {}: {}.", network.problem.empty() ? "" : " ",
                                   error.where(), error.what_happened());
    return;
  }
  if (profiles.empty()) return;
  const TraceProfile& newest = *std::ranges::max_element(profiles, {}, &TraceProfile::last_step);
  struct Sum {
    double forward = 0, backward = 0;
  };
  std::map<std::string, Sum> sums;
  for (const ProfileSpan& span : newest.spans) {
    if (span.category == "forward") sums[span.name].forward += span.duration;
    if (span.category == "backward") sums[span.name].backward += span.duration;
  }
  // Microseconds of all steps.
  const double scale = 1e-3 / static_cast<double>(std::max<std::int64_t>(1, newest.steps()));
  for (NetworkLayer& layer : network.layers) {
    const auto found = sums.find(layer.name.substr(0, kSpanName));
    if (found == sums.end()) continue;
    layer.forward_ms = scale * found->second.forward;
    layer.backward_ms = scale * found->second.backward;
    network.measured = fmt::format("the profile of steps {} to {}", newest.first_step, newest.last_step);
  }
}

}  // namespace lockstep::report
