// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/compute_device.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "comm/environment.h"
#include "config/param_reader.h"
#include "core/cpu.h"
#include "core/memory_limit.h"
#include "run/setup/gpu_module.h"

namespace lockstep {

namespace {

/// A rank's row of the table, as it is exchanged.
struct Row {
  char host[64], gpu[64], address[32], cores[64];
  std::int32_t numa_node;
};

template <std::size_t N>
void put(char (&to)[N], const std::string& from) {
  std::memset(to, 0, N);
  std::memcpy(to, from.data(), std::min(N - 1, from.size()));
}

}  // namespace

double ComputeDevice::memory_bytes(int ranks_on_host) const {
  return is_gpu() ? static_cast<double>(description.memory_bytes)
                  : static_cast<double>(usable_memory_bytes()) / ranks_on_host;
}

int device_of_rank(int rank_on_host, int visible_devices) { return rank_on_host % visible_devices; }

ComputeDevice open_device(const Config& config, int rank_on_host) {
  const std::string& wanted = config.general.device;
  if (wanted == "cpu") return {cpu_device(), cpu_kernels(), -1, {}, nullptr};
  const std::string why_not = load_gpu_module();
  Backend* backend = find_backend(wanted);
  if (backend == nullptr)
    throw config.error("", "device", why_not,
                       "Build with -DLOCKSTEP_CUDA=ON where the CUDA toolkit is, or choose device: cpu.");
  const int visible = backend->num_devices();
  if (visible == 0)
    throw config.error(
        "", "device",
        fmt::format("there is no GPU for rank {} of host {}: {}", rank_on_host, host_name(),
                    backend->problem()),
        "Check the job's GPUs and CUDA_VISIBLE_DEVICES (`lockstep info` prints what is seen), or choose "
        "device: cpu.");
  const int index = device_of_rank(rank_on_host, visible);
  Device& device = backend->open(index);
  const KernelTable& kernels =
      backend->kernels({.allow_tf32 = config.precision.allow_tf32, .check_plans = config.gpu.check_plans});
  return {device, kernels, index, backend->describe(index), backend};
}

std::string device_table(Communicator& world, const ComputeDevice& device, bool* shared) {
  *shared = false;
  if (!device.is_gpu()) return {};
  Row mine{};
  put(mine.host, host_name());
  put(mine.gpu, device.description.name);
  put(mine.address, device.description.address);
  put(mine.cores, allowed_cores_text());
  mine.numa_node = device.description.numa_node;
  std::vector<Row> rows(static_cast<std::size_t>(world.size()));
  world.allgather(&mine, sizeof mine, rows.data(), "GPU of each rank");
  std::string text = fmt::format("{:>5}  {:<16} {:<24} {:<14} {:>4}  {}\n", "rank", "host", "GPU", "address",
                                 "NUMA", "cores");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    std::size_t sharers = 0;
    for (const Row& other : rows)
      sharers += std::string_view(other.host) == row.host && std::string_view(other.address) == row.address;
    *shared = *shared || sharers > 1;
    text += fmt::format("{:>5}  {:<16} {:<24} {:<14} {:>4}  {}{}\n", i, row.host, row.gpu, row.address,
                        row.numa_node < 0 ? std::string("?") : std::to_string(row.numa_node), row.cores,
                        sharers > 1 ? fmt::format("  SHARED by {} ranks", sharers) : "");
  }
  text.pop_back();
  return text;
}

}  // namespace lockstep
