// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "support/counted_allocations.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::atomic<bool> g_counting{false};
std::atomic<long> g_own{0}, g_library{0}, g_library_bytes{0};
std::array<void*, 12> g_first_own{};  // the stack of the first own allocation

bool is_library(void* address) {
  Dl_info info;
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr &&
         (std::strstr(info.dli_fname, "libdnnl") != nullptr ||
          std::strstr(info.dli_fname, "libmkldnn") != nullptr);
}

[[gnu::noinline]] void count(std::size_t bytes) {
  std::array<void*, 12> stack{};
  const int frames = backtrace(stack.data(), static_cast<int>(stack.size()));
  for (int i = 0; i < frames; ++i)
    if (is_library(stack[static_cast<std::size_t>(i)])) {
      ++g_library;
      g_library_bytes += static_cast<long>(bytes);
      return;
    }
  if (g_own++ == 0) g_first_own = stack;
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (g_counting.load(std::memory_order_relaxed)) count(bytes);
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace lockstep {

Counts counted(FunctionRef<void()> function) {
  g_own = g_library = g_library_bytes = 0;
  g_counting = true;
  function();
  g_counting = false;
  return {g_own, g_library, g_library_bytes};
}

std::string first_own() {
  std::string text;
  for (void* address : g_first_own) {
    Dl_info info;
    if (address == nullptr || dladdr(address, &info) == 0) continue;
    text += fmt::format("\n  {} +{:#x} {}", info.dli_fname,
                        static_cast<char*>(address) - static_cast<char*>(info.dli_fbase),
                        info.dli_sname == nullptr ? "" : info.dli_sname);
  }
  return text;
}

void warm_counting() {
  std::array<void*, 4> stack{};
  backtrace(stack.data(), 4);  // loads its libraries
}

}  // namespace lockstep
