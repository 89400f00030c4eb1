// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Times of layers from a trace of the hook `profile`.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "driver/report/network_view.h"
#include "io/atomic_file.h"

namespace lockstep::report {

namespace {

namespace fs = std::filesystem;
constexpr std::uintmax_t kMostBytes = 64'000'000;

struct Trace {
  fs::path path;
  long long first = 0, last = 0;
};

/// The one of the latest steps.
Trace newest_trace(const std::string& run_dir) {
  Trace newest;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(run_dir) / "profile", failed)) {
    Trace trace{.path = entry.path()};
    char rest = 0;
    if (std::sscanf(entry.path().filename().c_str(), "trace-%lld-%lld.jso%c", &trace.first, &trace.last,
                    &rest) == 3 &&
        rest == 'n' && trace.last >= trace.first && trace.last > newest.last)
      newest = trace;
  }
  return newest;
}

}  // namespace

void add_profile(NetworkView& network, const std::string& run_dir) {
  const Trace trace = newest_trace(run_dir);
  std::error_code failed;
  if (trace.path.empty() || fs::file_size(trace.path, failed) > kMostBytes || failed) return;
  struct Sum {
    double forward = 0, backward = 0;
  };
  std::map<std::string, Sum> sums;
  try {
    const nlohmann::json root = nlohmann::json::parse(read_whole_file(trace.path.string()), nullptr, false);
    if (!root.is_object() || !root.contains("traceEvents")) return;
    for (const nlohmann::json& event : root["traceEvents"]) {
      if (!event.is_object() || event.value("ph", "") != "X") continue;
      const std::string category = event.value("cat", "");
      const double ms = 1e-3 * event.value("dur", 0.0);
      if (category == "forward") sums[event.value("name", "")].forward += ms;
      if (category == "backward") sums[event.value("name", "")].backward += ms;
    }
  } catch (const std::exception&) {
    return;
  }
  const auto steps = static_cast<double>(trace.last - trace.first + 1);
  for (NetworkLayer& layer : network.layers) {
    const auto found = sums.find(layer.name.substr(0, 47));  // as spans keep names
    if (found == sums.end()) continue;
    layer.forward_ms = found->second.forward / steps;
    layer.backward_ms = found->second.backward / steps;
    network.measured = fmt::format("the profile of steps {} to {}", trace.first, trace.last);
  }
}

}  // namespace lockstep::report
