// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "gpu/rate_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/timer.h"

namespace lockstep {

namespace {

constexpr std::int64_t kPattern = std::int64_t{1} << 18;  // period of the numbers in filled()
constexpr double kMeasureSeconds = 0.02;
constexpr int kRepeats = 7, kMostCalls = 1000;

}  // namespace

RateBench::RateBench(Backend& backend, const RateOptions& options)
    : options_(options),
      device_(backend.open(options.device)),
      kernels_(backend.kernels({})),
      tf32_(backend.kernels({.allow_tf32 = true})),
      description_(backend.describe(options.device).name),
      versions_(backend.versions()),
      stream_(device_) {
  lane_.stream = stream_.get();
  grow_scratch(kernels_.scratch_bytes);
  fmt::print("{}\n", description_);
  for (const auto& [what, version] : versions_) fmt::print("{} {}\n", what, version);
  fmt::print("{:<42} {:<30} {:<9} {:>11} {:>10} {:<8} {:>6}\n", "kernel", "shape", "type", "us", "rate", "",
             "share");
}

void RateBench::grow_scratch(std::size_t bytes) {
  if (bytes <= scratch_.size_bytes()) return;
  stream_.synchronize();
  scratch_ = Buffer(device_, bytes);
  lane_.scratch = scratch_.data();
  lane_.scratch_bytes = scratch_.size_bytes();
}

Buffer RateBench::uploaded(const void* from, std::size_t bytes) {
  Buffer buffer(device_, bytes);
  device_.copy_from_host(buffer.data(), from, bytes);
  return buffer;
}

Buffer RateBench::filled(std::int64_t count, DType type, float low) {
  const std::int64_t period = std::min(count, kPattern);
  std::vector<float> values(static_cast<std::size_t>(period));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = low + (static_cast<float>(i * 2654435761U % 1000) + 0.5F) * 1e-3F;
  const Buffer pattern = uploaded(values.data(), values.size() * sizeof(float));
  const std::size_t one = size_in_bytes(type);
  Buffer buffer(device_, static_cast<std::size_t>(count) * one);
  const Data begin(buffer.data(), type);
  kernels_.elementwise.convert(lane_, period, static_cast<const float*>(pattern.data()), begin);
  for (std::int64_t at = period; at < count; at += period)
    device_.copy(lane_.stream, begin.offset(at).address(), begin.address(),
                 static_cast<std::size_t>(std::min(period, count - at)) * one);
  stream_.synchronize();
  return buffer;
}

double RateBench::seconds(Call call) {
  const auto of = [&](int calls) {
    const Timer timer;
    for (int i = 0; i < calls; ++i) call(lane_);
    stream_.synchronize();
    return timer.seconds() / calls;
  };
  double best = of(1);  // also the warm-up
  if (options_.tiny) return best;
  best = of(3);
  const int calls = std::clamp(static_cast<int>(kMeasureSeconds / best), 1, kMostCalls);
  for (int r = 0; r < kRepeats; ++r) best = std::min(best, of(calls));
  return best;
}

double* RateBench::reference(const Rate& row) {
  if (row.unit == "GB/s") return &copy_rate_;
  for (auto& [type, rate] : peaks_)
    if (type == row.type) return &rate;
  return &peaks_.emplace_back(row.type, 0.0).second;
}

void RateBench::measure(Rate row, double work, double unit_size, Call call) {
  try {
    row.seconds = seconds(call);
    row.value = work / row.seconds / unit_size;
    double& best = *reference(row);
    if (std::exchange(peak_next_, false)) best = row.value;
    row.share = best > 0 ? row.value / best : 0;
  } catch (const Error& error) {
    peak_next_ = false;
    row.problem = error.what();
  }
  add(row);
}

void RateBench::problem(std::string kernel, std::string shape, std::string_view type,
                        const std::string& what) {
  peak_next_ = false;
  Rate row{std::move(kernel), std::move(shape), std::string(type)};
  row.problem = what;
  add(row);
}

void RateBench::copy(std::int64_t bytes) {
  const Buffer from = filled(bytes / 4), to(device_, from.size_bytes());
  peak_next_ = true;
  bandwidth("copy", fmt::format("{:.3g} MB", 1e-6 * static_cast<double>(from.size_bytes())), DType::f32,
            2.0 * static_cast<double>(from.size_bytes()),
            [&](const Lane& lane) { device_.copy(lane.stream, to.data(), from.data(), from.size_bytes()); });
}

void RateBench::bandwidth(std::string kernel, std::string shape, DType type, double bytes, Call call) {
  Rate row{std::move(kernel), std::move(shape), std::string(name_of(type))};
  row.unit = "GB/s";
  measure(row, bytes, 1e9, call);
}

void RateBench::flops(std::string kernel, std::string shape, const ComputeType& type, double flops,
                      Call call) {
  Rate row{std::move(kernel), std::move(shape), std::string(type.name())};
  row.unit = "TFLOP/s";
  measure(row, flops, 1e12, call);
}

void RateBench::add(const Rate& row) {
  rows_.push_back(row);
  if (row.problem.empty()) {
    fmt::print("{:<42} {:<30} {:<9} {:>11.1f} {:>10.4g} {:<8} {:>6}\n", row.kernel, row.shape, row.type,
               1e6 * row.seconds, row.value, row.unit,
               row.share > 0 ? fmt::format("{:.1f} %", 100 * row.share) : "");
  } else {
    ++failures_;
    fmt::print("{:<42} {:<30} {:<9} FAILED: {}\n", row.kernel, row.shape, row.type, row.problem);
  }
  std::fflush(stdout);
  write();
}

// Writes a temporary file and renames it, so that the file is always complete.
void RateBench::write() const {
  if (options_.json.empty()) return;
  nlohmann::json rows = nlohmann::json::array(), versions = nlohmann::json::object();
  for (const auto& [what, version] : versions_) versions[what] = version;
  for (const Rate& row : rows_) {
    nlohmann::json one = {{"kernel", row.kernel}, {"shape", row.shape}, {"type", row.type}};
    if (!row.problem.empty())
      one["problem"] = row.problem;
    else
      one.update({{"seconds", row.seconds}, {"value", row.value}, {"unit", row.unit}});
    if (row.share > 0) one["share"] = row.share;
    rows.push_back(std::move(one));
  }
  const std::string part = options_.json + ".part";
  std::ofstream file(part);
  file << nlohmann::json{{"device", description_},
                         {"versions", versions},
                         {"tiny", options_.tiny},
                         {"rows", rows}}
              .dump(2)
       << "\n";
  file.close();
  std::error_code failed;
  if (file) std::filesystem::rename(part, options_.json, failed);
  if (!file || failed) throw Error(ErrorKind::data, "the results could not be written", options_.json);
}

}  // namespace lockstep
