// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/commands/info.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/environment.h"
#include "core/cpu.h"
#include "core/device.h"
#include "core/memory_limit.h"
#include "core/version.h"
#include "driver/command_line/command.h"
#include "io/library_versions.h"
#include "kernels/backend.h"
#include "run/setup/gpu_module.h"

namespace lockstep {

namespace {

std::string built_levels_text() {
  std::string text;
  for (const IsaLevel level : built_isa_levels())
    text += fmt::format("{}{}", text.empty() ? "" : ", ", name_of(level));
  return text;
}

}  // namespace

std::vector<InfoRow> build_info() {
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  const int cores = available_cores();
  std::vector<InfoRow> rows = {
      {"lockstep", std::string(kVersion)},
      {"build", std::string(kBuild)},
      {"MPI", mpi_library_version()},
      {"primitives", primitive_library_version(DType::bf16)},
      {"HDF5", hdf5_library_version()},
      {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
      {"host", host_name()},
      {"processor", processor_name()},
      {"instruction set", fmt::format("{} (the environment variable LOCKSTEP_ISA caps it: {})",
                                      name_of(isa_level()), built_levels_text())},
      {"cores", fmt::format("{} may be used by this process", cores)},
      {"memory", fmt::format("{:.1f} GiB on this host{}", static_cast<double>(physical_memory_bytes()) / kGiB,
                             usable_memory_bytes() < physical_memory_bytes()
                                 ? fmt::format(", of which this process may use {:.1f}",
                                               static_cast<double>(usable_memory_bytes()) / kGiB)
                                 : "")},
      {"devices", fmt::format("{}: {} core{}; float32, bfloat16, float16", cpu_device().name(), cores,
                              cores == 1 ? "" : "s")},
  };
  if (const std::string why_not = load_gpu_module(); !why_not.empty()) rows.emplace_back("GPUs", why_not);
  for (Backend* backend : backends()) {
    for (const auto& [name, version] : backend->versions()) rows.emplace_back(name, version);
    const int count = backend->num_devices();
    if (count == 0) rows.emplace_back("GPUs", backend->problem());
    for (int i = 0; i < count; ++i) {
      const DeviceDescription gpu = backend->describe(i);
      rows.emplace_back(
          fmt::format("{}:{}", backend->name(), i),
          fmt::format("{}, {:.1f} GiB, at {}{}", gpu.name, static_cast<double>(gpu.memory_bytes) / kGiB,
                      gpu.address, gpu.numa_node < 0 ? "" : fmt::format(", NUMA node {}", gpu.numa_node)));
    }
  }
  return rows;
}

std::string info_text(std::span<const InfoRow> rows) {
  std::size_t width = 0;
  for (const InfoRow& row : rows) width = std::max(width, row.first.size());
  std::string text;
  for (const InfoRow& row : rows) text += fmt::format("{:<{}}  {}\n", row.first, width, row.second);
  return text;
}

namespace {

int run(const NoArguments& /*arguments*/) {
  if (launcher_rank_hint() == 0) fmt::print("{}", info_text(build_info()));
  return 0;
}

}  // namespace

extern const Command kInfoCommand = {"info", "Print build, libraries, devices, MPI and threads",
                                     "lockstep info", call_with<NoArguments, no_options, run>};

}  // namespace lockstep
