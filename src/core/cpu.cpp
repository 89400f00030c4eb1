// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/cpu.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "core/error.h"

namespace lockstep {

const char* name_of(IsaLevel level) {
  switch (level) {
    case IsaLevel::baseline:
      return "baseline";
    case IsaLevel::avx2:
      return "avx2";
    case IsaLevel::avx512:
      return "avx512";
  }
  return "unknown";
}

namespace {

IsaLevel best_level() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return IsaLevel::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
    return IsaLevel::avx2;
#endif
  return IsaLevel::baseline;
}

constexpr IsaLevel kBuiltLevels[] = {
#ifdef LOCKSTEP_BUILDS_BASELINE
    IsaLevel::baseline,
#endif
#ifdef LOCKSTEP_BUILDS_AVX2
    IsaLevel::avx2,
#endif
#ifdef LOCKSTEP_BUILDS_AVX512
    IsaLevel::avx512,
#endif
};

}  // namespace

IsaLevel isa_level_of(const char* cap, IsaLevel processor, std::span<const IsaLevel> built) {
  IsaLevel most = processor;
  const bool is_capped = cap != nullptr && *cap != '\0';
  if (is_capped) {
    constexpr std::array all{IsaLevel::baseline, IsaLevel::avx2, IsaLevel::avx512};
    const auto named =
        std::ranges::find_if(all, [&](IsaLevel level) { return std::string_view(cap) == name_of(level); });
    if (named == all.end())
      throw Error(ErrorKind::config, fmt::format("'{}' is not an instruction-set level", cap),
                  "environment variable LOCKSTEP_ISA", "Use baseline, avx2 or avx512, or unset it.");
    most = std::min(*named, processor);
  }
  const IsaLevel* best = nullptr;
  for (const IsaLevel& level : built)
    if (level <= most) best = &level;
  if (best == nullptr)
    throw Error(
        ErrorKind::config,
        fmt::format("this program was built for processors with {} or better, and {} {}",
                    name_of(built.front()),
                    most < processor ? "LOCKSTEP_ISA allows only" : "this processor has only", name_of(most)),
        most < processor ? "environment variable LOCKSTEP_ISA" : processor_name(),
        "Build it for all processors: scripts/build.sh release -DLOCKSTEP_ISA_LEVELS=all");
  return *best;
}

std::span<const IsaLevel> built_isa_levels() { return kBuiltLevels; }

IsaLevel isa_level() {
  static const IsaLevel level = isa_level_of(std::getenv("LOCKSTEP_ISA"), best_level(), kBuiltLevels);
  return level;
}

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

std::string allowed_cores_text() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return "unknown";
  std::string text;
  for (int first = 0; first < CPU_SETSIZE; ++first) {
    if (!CPU_ISSET(first, &set)) continue;
    int last = first;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set)) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    if (last > first) text += fmt::format("-{}", last);
    first = last;
  }
  return text;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

std::size_t physical_memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && page_bytes > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(page_bytes)
                                     : 0;
}

std::size_t peak_resident_bytes() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? static_cast<std::size_t>(usage.ru_maxrss) * 1024 : 0;
}

}  // namespace lockstep
