// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// GCC's coverage for libFuzzer's library, so that the parsers are fuzzed as they are built: GCC calls
// __sanitizer_cov_trace_pc() in each basic block (the linker puts the function here in its place; libFuzzer's
// own does nothing), and libFuzzer looks at arrays of counters. This file is not instrumented.
#include <cstddef>
#include <cstdint>

extern "C" void __sanitizer_cov_8bit_counters_init(std::uint8_t* begin, std::uint8_t* end);

namespace {

/// A block's counter is found by a hash of its address; few of a parser's some thousand blocks share one.
std::uint8_t counters[std::size_t{1} << 16];

__attribute__((constructor)) void announce_counters() {
  __sanitizer_cov_8bit_counters_init(counters, counters + sizeof counters);
}

}  // namespace

extern "C" void __wrap___sanitizer_cov_trace_pc() {
  const auto address = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  ++counters[(address * 0x9E3779B97F4A7C15U) >> 48];
}

// Comparisons of floating-point numbers, which libFuzzer does not look at.
extern "C" void __sanitizer_cov_trace_cmpf(float, float) {}
extern "C" void __sanitizer_cov_trace_cmpd(double, double) {}
