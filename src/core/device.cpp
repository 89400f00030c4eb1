// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/device.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "core/error.h"

namespace lockstep {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(bool for_plans = false) : for_plans_(for_plans) {}
  std::string name() const override { return "cpu"; }
  bool is_host() const override { return true; }

  void* allocate(std::size_t bytes) override {
    if (bytes == 0) return nullptr;
    // Large blocks are aligned to huge pages, which reduces TLB misses.
    const std::size_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void* address = is_mapped(bytes) ? map(rounded) : std::aligned_alloc(alignment, rounded);
    LOCKSTEP_REQUIRE(address != nullptr, ErrorKind::device,
                     "out of memory: {:.1f} MB could not be allocated ({:.1f} MB are in use); use a smaller "
                     "batch_size, more ranks, or a machine with more memory",
                     static_cast<double>(bytes) / 1e6, static_cast<double>(in_use_.load()) / 1e6);
    if (!is_mapped(bytes)) {
      if (alignment == kHugePage) madvise(address, rounded, MADV_HUGEPAGE);  // a hint: failure is harmless
      std::memset(address, 0, rounded);
    }
    const std::size_t now = in_use_.fetch_add(bytes) + bytes;
    std::size_t peak = peak_.load();
    while (peak < now && !peak_.compare_exchange_weak(peak, now)) {
    }
    return address;
  }

  void deallocate(void* address, std::size_t bytes) noexcept override {
    if (address == nullptr) return;
    if (is_mapped(bytes))
      munmap(address, (bytes + kHugePage - 1) / kHugePage * kHugePage);
    else
      std::free(address);
    in_use_.fetch_sub(bytes);
  }

  void* allocate_pinned(std::size_t bytes) override { return allocate(bytes); }
  void deallocate_pinned(void* address, std::size_t bytes) noexcept override { deallocate(address, bytes); }
  std::size_t peak_bytes() const override { return peak_.load(); }

  void copy_from_host(void* to, const void* from, std::size_t bytes) override { move(to, from, bytes); }
  void copy_to_host(void* to, const void* from, std::size_t bytes) override { move(to, from, bytes); }
  void upload(void*, void* to, const void* from, std::size_t bytes) override { move(to, from, bytes); }
  void download(void*, void* to, const void* from, std::size_t bytes) override { move(to, from, bytes); }
  void copy(void*, void* to, const void* from, std::size_t bytes) override { move(to, from, bytes); }
  void zero(void*, void* to, std::size_t bytes) override {
    if (bytes > 0) std::memset(to, 0, bytes);
  }

  void* create_stream() override { return nullptr; }
  void destroy_stream(void*) noexcept override {}
  void synchronize(void*) override {}
  void* create_event() override { return nullptr; }
  void destroy_event(void*) noexcept override {}
  void record(void*, void*) override {}
  void wait(void*) override {}
  void stream_wait(void*, void*) override {}

  void begin_recording(void*) override { throw_no_recording(); }
  void* end_recording(void*) override {
    throw_no_recording();
    return nullptr;
  }
  void abandon_recording(void*) noexcept override {}
  void launch(void*, void*) override { throw_no_recording(); }
  void destroy_graph(void*) noexcept override {}
  void mark_profile(bool) override {}

 private:
  bool is_mapped(std::size_t bytes) const { return for_plans_ && bytes >= kHugePage; }
  /// Null if there is not enough. The system fills pages with zeros when they are first used.
  static void* map(std::size_t bytes) {
    void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return address == MAP_FAILED ? nullptr : address;
  }
  static void throw_no_recording() { LOCKSTEP_CHECK(false, "the CPU device cannot record work"); }
  static void move(void* to, const void* from, std::size_t bytes) {
    if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
  }
  const bool for_plans_;
  std::atomic<std::size_t> in_use_{0}, peak_{0};
};

}  // namespace

Device& cpu_device() {
  static CpuDevice device;
  return device;
}

Device& cpu_device_for_plans() {
  static CpuDevice device(true);
  return device;
}

}  // namespace lockstep
