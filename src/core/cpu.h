// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The resources of this process: instruction-set level of the kernels, cores, memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace lockstep {

/// The instruction-set levels that hot kernels are compiled for. Every processor runs `baseline`.
enum class IsaLevel { baseline, avx2, avx512 };
const char* name_of(IsaLevel level);

/// The level in use: the best one that the processor has and the program was built for, limited by the
/// environment variable LOCKSTEP_ISA (baseline, avx2, avx512). Throws Error(config) for an unknown value, and
/// if the program was built for higher levels alone. oneDNN has the same limit (kernels/onednn.h).
IsaLevel isa_level();
/// The levels that the program was built for, ascending.
std::span<const IsaLevel> built_isa_levels();
/// The choice itself, for tests. `cap` is the text of LOCKSTEP_ISA, or null; `built` are the levels of the
/// program, ascending.
IsaLevel isa_level_of(const char* cap, IsaLevel processor, std::span<const IsaLevel> built);

/// The number of cores in this process's affinity mask, at least 1.
int available_cores();
/// The cores of available_cores() as text: "0-7,16".
std::string allowed_cores_text();
/// The host's name.
std::string host_name();
/// The processor's model name, such as "AMD EPYC 7763 64-Core Processor"; "unknown" if the system does not
/// report it.
std::string processor_name();
/// The memory of the machine in bytes; 0 if the system does not report it.
std::size_t physical_memory_bytes();
/// The peak resident memory of this process in bytes.
std::size_t peak_resident_bytes();

}  // namespace lockstep
