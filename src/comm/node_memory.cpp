// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/node_memory.h"

#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "comm/mpi_communicator.h"
#include "core/error.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace lockstep {

namespace {

/// Left for others: messages between ranks pass through the same file system.
constexpr double kReservedBytes = 64e6;

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

/// Where MPI puts its windows: MPICH and Open MPI use POSIX shared memory, unless Open MPI is told otherwise.
std::string backing_folder() {
  const char* const chosen = std::getenv("OMPI_MCA_osc_sm_backing_directory");
  return chosen != nullptr && *chosen != '\0' ? chosen : "/dev/shm";
}

/// Why there is no room for so many bytes; empty: there is.
std::string shortage(std::size_t bytes) {
  const std::string folder = backing_folder();
  struct statvfs status {};
  if (::statvfs(folder.c_str(), &status) != 0)
    return fmt::format("{} cannot be used: {}", folder, std::strerror(errno));
  const double free_bytes = static_cast<double>(status.f_bavail) * static_cast<double>(status.f_frsize);
  if (static_cast<double>(bytes) + kReservedBytes <= free_bytes) return {};
  return fmt::format("{} has {:.3g} GB free, and {:.3g} GB are needed", folder, free_bytes * 1e-9,
                     (static_cast<double>(bytes) + kReservedBytes) * 1e-9);
}

}  // namespace

/// In the first page. Zero in the beginning.
struct NodeMemory::Header {
  std::atomic<int> dropped;  ///< ranks that do not use the memory any more
};

NodeMemory::NodeMemory(void* window, std::size_t bytes, int ranks) : bytes_(bytes), ranks_(ranks) {
  const auto address = reinterpret_cast<std::uintptr_t>(window);
  header_ = reinterpret_cast<Header*>(whole_pages(address));
  data_ = reinterpret_cast<char*>(header_) + page_bytes();
}

NodeMemory::~NodeMemory() {
  if (header_->dropped.fetch_add(1) + 1 < ranks_) return;
  // If the file system cannot take them back now, they are free when the processes end.
  ::madvise(header_, page_bytes() + whole_pages(bytes_), MADV_REMOVE);
}

std::unique_ptr<NodeMemory> NodeMemory::create(Communicator& host, std::size_t bytes, std::string& no_room) {
  constexpr const char* kWhat = "memory of the host";
  no_room.clear();
  auto* const mpi = dynamic_cast<MpiCommunicator*>(&host);
  if (mpi == nullptr || host.size() == 1 || bytes == 0) return nullptr;
  const std::size_t needed = whole_pages(bytes) + 2 * page_bytes();
  // One rank decides: MPI's call waits without end if it fails on a single rank.
  if (host.rank() == 0) no_room = shortage(needed);
  auto length = static_cast<std::int64_t>(no_room.size());
  host.broadcast(&length, sizeof length, 0, kWhat);
  no_room.resize(static_cast<std::size_t>(length));
  host.broadcast(no_room.data(), no_room.size(), 0, kWhat);
  if (!no_room.empty()) return nullptr;
  void* const window = mpi->shared_window(host.rank() == 0 ? needed : 0, kWhat, no_room);
  const char mine = window != nullptr ? 1 : 0;
  std::vector<char> all(static_cast<std::size_t>(host.size()));
  host.allgather(&mine, 1, all.data(), kWhat);
  if (std::ranges::find(all, 0) != all.end()) {
    if (no_room.empty()) no_room = "MPI gave another rank no shared window";
    return nullptr;
  }
  std::unique_ptr<NodeMemory> memory(new NodeMemory(window, bytes, host.size()));
  if (host.rank() == 0) new (memory->header_) Header{};
  publish(host);
  return memory;
}

void NodeMemory::reserve(std::size_t offset, std::size_t bytes) const {
  // The header, too, if the range is the first one.
  const std::size_t begin = offset == 0 ? 0 : page_bytes() + offset / page_bytes() * page_bytes();
  const std::size_t end = page_bytes() + whole_pages(offset + bytes);
  if (::madvise(reinterpret_cast<char*>(header_) + begin, end - begin, MADV_POPULATE_WRITE) == 0) return;
  if (errno != EFAULT && errno != ENOMEM && errno != EHWPOISON) return;  // a kernel before 5.14
  throw Error(ErrorKind::data,
              fmt::format("no shared memory is left for {:.3g} GB of samples", 1e-9 * bytes_),
              backing_folder(),
              "Make room there (df), or give data.memory_gb a value below the size of the data, which are "
              "then read while they are used.");
}

void NodeMemory::publish(Communicator& host) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  host.barrier("memory of the host");
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace lockstep
