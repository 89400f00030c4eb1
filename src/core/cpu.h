// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What this processor and this process may use: the instruction-set level of our kernels, cores, memory.
#pragma once

#include <cstddef>
#include <string>

namespace lockstep {

/// Levels that hot kernels exist for. `baseline` is what every x86-64 (or other) processor runs.
enum class IsaLevel { baseline, avx2, avx512 };
const char* name_of(IsaLevel level);

/// The level in use: the processor's best, capped by the environment variable LOCKSTEP_ISA (baseline, avx2,
/// avx512). An unknown value throws Error(config). oneDNN is capped alike (kernels/onednn.h).
IsaLevel isa_level();

/// Cores that this process may run on (its affinity mask), at least 1.
int available_cores();
/// Them as text: "0-7,16".
std::string allowed_cores_text();
/// The host's name.
std::string host_name();
/// "AMD EPYC ..." where the system tells.
std::string processor_name();
/// Memory of the machine; 0 if the system does not tell.
std::size_t physical_memory_bytes();
/// Most memory this process has had resident so far.
std::size_t peak_resident_bytes();

}  // namespace lockstep
