// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Address spaces of the emulated GPU. All of them are memory of the process, so an instruction that names the
// wrong one would do what a GPU does not.
#include <link.h>

#include <cstdio>
#include <cstdlib>

#include "runtime.h"

namespace lockstep::emulation {
namespace {

struct Range {
  std::uintptr_t begin = 0, end = 0;
  bool holds(const void* address, std::size_t bytes) const {
    const auto first = reinterpret_cast<std::uintptr_t>(address);
    return begin <= first && first + bytes <= end;
  }
};

/// The thread-local variables of this program in this host thread: among them are all __shared__ ones.
Range thread_local_variables() {
  Range found;
  dl_iterate_phdr(
      [](dl_phdr_info* module, std::size_t, void* to) {
        for (int i = 0; i < module->dlpi_phnum; ++i) {
          if (module->dlpi_phdr[i].p_type != PT_TLS) continue;
          const auto begin = reinterpret_cast<std::uintptr_t>(module->dlpi_tls_data);
          const Range range{begin, begin + module->dlpi_phdr[i].p_memsz};
          if (!range.holds(&threadIdx, sizeof threadIdx)) continue;
          *static_cast<Range*>(to) = range;
          return 1;
        }
        return 0;
      },
      &found);
  return found;
}

[[noreturn]] void refuse(const void* address, std::size_t bytes, const char* instruction, const char* why) {
  std::fprintf(stderr, "emulated GPU: %s of %zu bytes at %p, which %s (block %u,%u,%u, thread %u,%u,%u)\n",
               instruction, bytes, address, why, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y,
               threadIdx.z);
  std::abort();
}

void require_alignment(const void* address, std::size_t bytes, const char* instruction) {
  if (reinterpret_cast<std::uintptr_t>(address) % bytes != 0)
    refuse(address, bytes, instruction, "is not aligned");
}

}  // namespace

void require_global(const void* address, std::size_t bytes, const char* instruction) {
  require_alignment(address, bytes, instruction);
  if (!runtime().memory.holds(address, bytes)) refuse(address, bytes, instruction, "is not in global memory");
}

void require_shared(const void* address, std::size_t bytes, const char* instruction) {
  require_alignment(address, bytes, instruction);
  static thread_local const Range variables = thread_local_variables();
  if (dynamic_shared_bytes_from(address) < bytes && !variables.holds(address, bytes))
    refuse(address, bytes, instruction, "is not in shared memory");
}

}  // namespace lockstep::emulation
