// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The GPUs of each rank: which there are, that one can be opened, how fast copies to and from it are; and
// NCCL.
#include <fmt/format.h>

#include <chrono>

#include "comm/mpi_device_communicator.h"
#include "comm/share_text.h"
#include "kernels/backend.h"
#include "run/setup/compute_device.h"
#include "run/setup/gpu_module.h"
#include "tools/doctor/finding.h"

namespace lockstep {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kBytes = std::size_t{64} << 20;
constexpr const char* kBreak = "\n";

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Bytes per second of copies from pinned memory to the device and back.
std::pair<double, double> copy_speeds(Device& device) {
  const DeviceStream stream(device);
  void* const on_device = device.allocate(kBytes);
  void* const on_host = device.allocate_pinned(kBytes);
  const auto speed = [&](auto copy) {
    copy();
    stream.synchronize();
    const auto begin = Clock::now();
    for (int i = 0; i < 4; ++i) copy();
    stream.synchronize();
    return 4.0 * static_cast<double>(kBytes) / since(begin);
  };
  const double up = speed([&] { device.upload(stream.get(), on_device, on_host, kBytes); });
  const double down = speed([&] { device.download(stream.get(), on_host, on_device, kBytes); });
  device.deallocate_pinned(on_host, kBytes);
  device.deallocate(on_device, kBytes);
  return {up, down};
}

/// What this rank finds, as lines "state name text" with advice after a tab.
std::string look(int rank_on_host) {
  if (!host_has_gpus()) return "absent\tGPU\tnone on this host, so no NCCL is needed\t";
  if (const std::string why_not = load_gpu_module(); !why_not.empty())
    return fmt::format(
        "warning\tGPU\tthe host has GPUs, which cannot be used: {}\tdocs/gpu.md says what is needed.",
        why_not);
  for (Backend* const backend : backends()) {
    const int count = backend->num_devices();
    if (count == 0)
      return fmt::format("warning\tGPU\t{}\tLook at nvidia-smi and at CUDA_VISIBLE_DEVICES; docs/gpu.md.",
                         backend->problem());
    const int index = device_of_rank(rank_on_host, count);
    const DeviceDescription gpu = backend->describe(index);
    const auto [up, down] = copy_speeds(backend->open(index));
    std::string text = fmt::format(
        "good\tGPU\t{}, number {} of {}, {:.1f} GiB, at {}; copies {:.1f} GB/s there, {:.1f} GB/s back\t",
        gpu.name, index, count, static_cast<double>(gpu.memory_bytes) / (1 << 30), gpu.address, up / 1e9,
        down / 1e9);
    std::string nccl;
    for (const auto& [name, version] : backend->versions())
      if (name == "NCCL") nccl = version;
    return text + kBreak +
           (nccl.empty() ? "absent\tNCCL\tnot in this build: several GPUs exchange through the host\t"
                         : fmt::format("good\tNCCL\t{}\t", nccl)) +
           kBreak +
           (mpi_takes_device_memory()
                ? "good\tMPI and GPUs\tMPI sends and receives GPU memory\t"
                : "absent\tMPI and GPUs\tMPI does not say that it sends GPU memory, which "
                  "matters only where NCCL does not connect GPUs\t");
  }
  return "absent\tGPU\tthis build has no GPU backend\t";
}

std::string caught_look(int rank_on_host) {
  try {
    return look(rank_on_host);
  } catch (const Error& error) {
    return fmt::format("failure\tGPU\t{}\t{}", error.what_happened(), error.advice());
  }
}

Finding::State state_of(const std::string& name) {
  return name == "good"      ? Finding::State::good
         : name == "absent"  ? Finding::State::absent
         : name == "warning" ? Finding::State::warning
                             : Finding::State::failure;
}

}  // namespace

Findings check_gpus(CommEnvironment& environment) {
  const std::vector<std::string> all =
      gather_texts(environment.world(), caught_look(place_on_host(environment).rank), "doctor: GPUs");
  Findings findings;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    // Hosts without a GPU are one line.
    if (rank > 0 && all[rank] == all[0] && all[rank].starts_with("absent")) continue;
    std::string rest = all[rank];
    while (!rest.empty()) {
      const std::string line = rest.substr(0, rest.find('\n'));
      rest.erase(0, std::min(rest.size(), line.size() + 1));
      std::vector<std::string> fields(1);
      for (const char c : line) {
        if (c == '\t')
          fields.emplace_back();
        else
          fields.back() += c;
      }
      if (fields.size() < 4) continue;
      findings.push_back({state_of(fields[0]), fields[1],
                          all.size() == 1
                              ? fields[2]
                              : fmt::format("rank {} ({}): {}", rank, environment.hosts()[rank], fields[2]),
                          fields[3]});
    }
  }
  return findings;
}

}  // namespace lockstep
