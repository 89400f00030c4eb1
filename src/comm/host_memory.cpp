// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/host_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <random>

#include "core/error.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace lockstep {

namespace {

constexpr std::size_t kFirstPage = 4096;  // holds the random number; also the grain of reserve()

/// What a rank tells the others of its segment, and what it found when it opened theirs.
struct Offer {
  std::int64_t process = 0, descriptor = -1;
  std::uint64_t bytes = 0, number = 0;
  std::int64_t error = 0;  ///< errno; 0: none
  std::int64_t peer = -1;  ///< whose segment could not be opened; -1: the own one
};

/// Closes a file descriptor at the end of the scope.
struct Descriptor {
  int number = -1;
  ~Descriptor() {
    if (number >= 0) close(number);
  }
};

std::byte* map_all(int descriptor, std::size_t bytes) {
  void* const address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (address == MAP_FAILED) return nullptr;
  // Large pages where the kernel gives them for shared memory; without them it is as right, and a little
  // slower.
  (void)madvise(address, bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(address);
}

/// The memory that the host can give without swapping; none: the system does not say.
std::optional<std::size_t> available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  for (std::size_t kilobytes = 0; file >> name >> kilobytes; file.ignore(80, '\n'))
    if (name == "MemAvailable:") return kilobytes * 1024;
  return std::nullopt;
}

/// Gives the file its size. Beyond the limit of file sizes the kernel would end the process at once. Returns
/// errno.
int set_size(int descriptor, std::size_t bytes, HostMemory::Pages pages) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < bytes)
    return EFBIG;
  if (available_bytes().value_or(bytes) < bytes) return ENOMEM;
  const auto size = static_cast<off_t>(bytes);
  if (pages == HostMemory::Pages::at_once) return posix_fallocate(descriptor, 0, size);
  return ftruncate(descriptor, size) == 0 ? 0 : errno;
}

/// The rank that met the first error, and its words; empty without an error.
std::string first_error(const std::vector<Offer>& offers) {
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    const Offer& offer = offers[rank];
    if (offer.error == 0) continue;
    const std::string what = offer.peer < 0 ? fmt::format("get {} bytes of shared memory", offer.bytes)
                                            : fmt::format("open the memory of rank {}", offer.peer);
    return fmt::format("rank {} can't {}: {}", rank, what, std::strerror(static_cast<int>(offer.error)));
  }
  return {};
}

}  // namespace

std::unique_ptr<HostMemory> HostMemory::create(Communicator& group, std::size_t bytes, std::string& reason,
                                               Pages pages) {
  const auto ranks = static_cast<std::size_t>(group.size()), own = static_cast<std::size_t>(group.rank());
  std::unique_ptr<HostMemory> memory(new HostMemory);
  memory->maps_.resize(ranks);
  const auto keep = [&](std::size_t rank, std::byte* address, std::size_t all) {
    memory->maps_[rank] = {address + kFirstPage, all - kFirstPage};
  };

  Offer offer;
  offer.process = getpid();
  offer.bytes = kFirstPage + bytes;
  std::random_device random;
  offer.number = (static_cast<std::uint64_t>(random()) << 32) | random();
  const Descriptor file{memfd_create("lockstep", MFD_CLOEXEC)};
  offer.descriptor = file.number;
  offer.error = file.number < 0 ? errno : set_size(file.number, offer.bytes, pages);
  if (offer.error == 0) {
    if (std::byte* const address = map_all(file.number, offer.bytes); address == nullptr) {
      offer.error = errno;
    } else {
      std::memcpy(address, &offer.number, sizeof offer.number);
      keep(own, address, offer.bytes);
    }
  }
  std::vector<Offer> offers(ranks);
  group.allgather(&offer, sizeof offer, offers.data(), "shared memory");
  reason = first_error(offers);
  if (!reason.empty()) return nullptr;

  for (std::size_t rank = 0; rank < ranks && offer.error == 0; ++rank) {
    if (rank == own) continue;
    const Offer& other = offers[rank];
    const std::string path = fmt::format("/proc/{}/fd/{}", other.process, other.descriptor);
    const Descriptor theirs{open(path.c_str(), O_RDWR | O_CLOEXEC)};
    struct stat about {};
    offer.peer = static_cast<std::int64_t>(rank);
    if (theirs.number < 0 || fstat(theirs.number, &about) != 0) {
      offer.error = errno;
    } else if (static_cast<std::uint64_t>(about.st_size) != other.bytes) {
      offer.error = ESRCH;
    } else if (std::byte* const address = map_all(theirs.number, other.bytes); address == nullptr) {
      offer.error = errno;
    } else {
      keep(rank, address, other.bytes);
      if (std::memcmp(address, &other.number, sizeof other.number) != 0) offer.error = ESRCH;
    }
  }
  group.allgather(&offer, sizeof offer, offers.data(), "shared memory is mapped");
  reason = first_error(offers);
  return reason.empty() ? std::move(memory) : nullptr;
}

bool HostMemory::reserve(int rank, std::size_t offset, std::size_t bytes) const {
  const std::size_t begin = offset / kFirstPage * kFirstPage;
  const int code = madvise(segment(rank) + begin, offset + bytes - begin, MADV_POPULATE_WRITE);
  return code == 0 || (errno != EFAULT && errno != ENOMEM && errno != EHWPOISON);  // a kernel before 5.14
}

void HostMemory::publish(Communicator& group) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  group.barrier("memory of the host");
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

HostMemory::~HostMemory() {
  for (const Map& map : maps_)
    if (map.data != nullptr) munmap(map.data - kFirstPage, map.bytes + kFirstPage);
}

}  // namespace lockstep
