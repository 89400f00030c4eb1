// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi_communicator.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>
#include <vector>

#include "comm/flight_recorder.h"
#include "comm/mpi_error.h"
#include "comm/mpi_group.h"
#include "core/error.h"

namespace lockstep {

namespace {
constexpr int kTags = 32'000;  // MPI promises 32,767
constexpr auto kSleep = std::chrono::milliseconds(5);
constexpr std::size_t kMaxMessageBytes = std::size_t{1} << 30;
}  // namespace

struct MpiCommunicator::Native {
  MpiGroup& group;
  MPI_Comm comm = group.comm();
  int tag = 1 + group.use() % kTags;
  std::size_t max_message_bytes = kMaxMessageBytes;
  // The pending requests, and for each the expected bytes (0 for a send). The vectors keep their capacity.
  std::vector<MPI_Request> requests = {};
  std::vector<std::size_t> expected = {};
  bool failed = false;
  int exceptions = std::uncaught_exceptions();

  // An exception that passes may have left other ranks in a call.
  ~Native() { group.give_back(!failed && requests.empty() && std::uncaught_exceptions() <= exceptions); }
};

MpiCommunicator::MpiCommunicator(std::unique_ptr<Native> native, int rank, int size, std::string name)
    : Communicator(rank, size, std::move(name)), native_(std::move(native)) {
  native_->requests.reserve(256);
  native_->expected.reserve(256);
}

MpiCommunicator::~MpiCommunicator() = default;

std::unique_ptr<MpiCommunicator> MpiCommunicator::wrap(MpiGroup& group, std::string name,
                                                       std::size_t max_message_bytes) {
  std::unique_ptr<Native> native(new Native{.group = group, .max_message_bytes = max_message_bytes});
  int rank = 0, size = 0;
  check_mpi(MPI_Comm_rank(native->comm, &rank), "MPI_Comm_rank", name.c_str());
  check_mpi(MPI_Comm_size(native->comm, &size), "MPI_Comm_size", name.c_str());
  return std::unique_ptr<MpiCommunicator>(
      new MpiCommunicator(std::move(native), rank, size, std::move(name)));
}

std::unique_ptr<MpiCommunicator> MpiCommunicator::of(HostCommunicator host, std::string name) {
  return wrap(MpiGroup::root(host.as<MPI_Comm>()).duplicate(name), name, kMaxMessageBytes);
}

MpiGroup& MpiCommunicator::group() { return native_->group; }

std::unique_ptr<Communicator> MpiCommunicator::duplicate(std::string name) {
  MpiGroup& made = native_->group.duplicate(name);
  return wrap(made, std::move(name), native_->max_message_bytes);
}

std::unique_ptr<Communicator> MpiCommunicator::split_by_host(std::string name) {
  MpiGroup& made = native_->group.split_by_host(name);
  return wrap(made, std::move(name), native_->max_message_bytes);
}

std::unique_ptr<Communicator> MpiCommunicator::split(int color, std::string name) {
  MpiGroup& made = native_->group.split(color, name);
  return wrap(made, std::move(name), native_->max_message_bytes);
}

void MpiCommunicator::sleeping_barrier(const char* what) {
  const RecordedCall call(what, 0);
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(native_->comm, &request), "MPI_Ibarrier", what);
  for (int done = 0;;) {
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test", what);
    if (done != 0) return;
    std::this_thread::sleep_for(kSleep);
  }
}

void MpiCommunicator::abort(int code) noexcept {
  std::fflush(nullptr);
  MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);  // in case MPI_Abort returns
}

void MpiCommunicator::set_max_message_bytes(std::size_t bytes) {
  LOCKSTEP_CHECK(bytes >= sizeof(float) && bytes % sizeof(float) == 0 && bytes <= (std::size_t{1} << 30),
                 "{}", bytes);
  native_->max_message_bytes = bytes;
}

void MpiCommunicator::check(int code, const char* call, const char* what) {
  if (code == MPI_SUCCESS) [[likely]]
    return;
  native_->failed = true;
  throw_mpi_error(code, call, fmt::format("'{}' on rank {} of '{}'", what, rank(), name()));
}

void MpiCommunicator::post_receive(void* data, std::size_t bytes, int from, const char* what) {
  Native& n = *native_;
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t piece = std::min(bytes - done, n.max_message_bytes);
    n.requests.push_back(MPI_REQUEST_NULL);
    n.expected.push_back(piece);
    check(MPI_Irecv(static_cast<char*>(data) + done, static_cast<int>(piece), MPI_BYTE, from, n.tag, n.comm,
                    &n.requests.back()),
          "MPI_Irecv", what);
    done += piece;
  }
}

void MpiCommunicator::post_send(const void* data, std::size_t bytes, int to, const char* what) {
  Native& n = *native_;
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t piece = std::min(bytes - done, n.max_message_bytes);
    n.requests.push_back(MPI_REQUEST_NULL);
    n.expected.push_back(0);
    check(MPI_Isend(static_cast<const char*>(data) + done, static_cast<int>(piece), MPI_BYTE, to, n.tag,
                    n.comm, &n.requests.back()),
          "MPI_Isend", what);
    done += piece;
  }
}

// Waits for all posted requests and checks the length of what arrived. It waits for them one by one, because
// MPI_Waitall of Open MPI 4.1 loops for ever when a message is longer than its receive.
void MpiCommunicator::finish(const char* what) {
  Native& n = *native_;
  int code = MPI_SUCCESS, arrived = 0, from = -1;
  std::size_t expected = 0;
  for (std::size_t i = 0; i < n.requests.size() && code == MPI_SUCCESS && from < 0; ++i) {
    MPI_Status status;
    code = MPI_Wait(&n.requests[i], &status);
    expected = n.expected[i];
    if (expected == 0 || code != MPI_SUCCESS) continue;
    code = MPI_Get_count(&status, MPI_BYTE, &arrived);
    if (code == MPI_SUCCESS && static_cast<std::size_t>(arrived) != expected) from = status.MPI_SOURCE;
  }
  n.failed = n.failed || from >= 0;
  n.requests.clear();
  n.expected.clear();
  check(code, "MPI_Wait", what);
  LOCKSTEP_REQUIRE(
      from < 0, ErrorKind::communication,
      "'{}' on rank {} of '{}' expected {} bytes from rank {} and got {}: the ranks are not in the same call",
      what, rank(), name(), expected, from, arrived);
}

void MpiCommunicator::do_exchange(const void* send, std::size_t send_bytes, int to, void* recv,
                                  std::size_t recv_bytes, int from, const char* what) {
  post_receive(recv, recv_bytes, from, what);
  post_send(send, send_bytes, to, what);
  finish(what);
}

void MpiCommunicator::do_exchange_many(std::span<const OutMessage> out, std::span<const InMessage> in,
                                       const char* what) {
  for (const InMessage& message : in) post_receive(message.data, message.bytes, message.from, what);
  for (const OutMessage& message : out) post_send(message.data, message.bytes, message.to, what);
  finish(what);
}

void MpiCommunicator::do_exchange_pieces(const void* send, std::size_t send_bytes, std::size_t recv_bytes,
                                         int peer, void* ring, std::size_t piece_bytes, Arrived arrived,
                                         const char* what) {
  piece_bytes = std::min(piece_bytes, native_->max_message_bytes);
  std::array<MPI_Request, kRingPieces> in, out;
  in.fill(MPI_REQUEST_NULL);
  out.fill(MPI_REQUEST_NULL);
  const auto place = [&](std::size_t piece) {
    return static_cast<char*>(ring) + piece % kRingPieces * piece_bytes;
  };
  const auto receive = [&](std::size_t piece) {
    const std::size_t offset = piece * piece_bytes;
    if (offset >= recv_bytes) return;
    check(MPI_Irecv(place(piece), static_cast<int>(std::min(piece_bytes, recv_bytes - offset)), MPI_BYTE,
                    peer, native_->tag, native_->comm, &in[piece % kRingPieces]),
          "MPI_Irecv", what);
  };
  const auto transmit = [&](std::size_t piece) {
    const std::size_t offset = piece * piece_bytes;
    if (offset >= send_bytes) return;
    check(MPI_Isend(static_cast<const char*>(send) + offset,
                    static_cast<int>(std::min(piece_bytes, send_bytes - offset)), MPI_BYTE, peer,
                    native_->tag, native_->comm, &out[piece % kRingPieces]),
          "MPI_Isend", what);
  };
  for (std::size_t piece = 0; piece < kRingPieces; ++piece) receive(piece);
  for (std::size_t piece = 0; piece < kRingPieces; ++piece) transmit(piece);
  const std::size_t pieces = (std::max(send_bytes, recv_bytes) + piece_bytes - 1) / piece_bytes;
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    const std::size_t offset = piece * piece_bytes;
    if (offset < recv_bytes) {
      MPI_Status status;
      check(MPI_Wait(&in[piece % kRingPieces], &status), "MPI_Wait", what);
      const std::size_t expected = std::min(piece_bytes, recv_bytes - offset);
      int count = 0;
      check(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count", what);
      LOCKSTEP_REQUIRE(
          static_cast<std::size_t>(count) == expected, ErrorKind::communication,
          "'{}' on rank {} of '{}' expected {} bytes from rank {} and got {}: the ranks are not in the "
          "same call",
          what, rank(), name(), expected, peer, count);
      arrived(offset, place(piece), expected);
      receive(piece + kRingPieces);
    }
    check(MPI_Wait(&out[piece % kRingPieces], MPI_STATUS_IGNORE), "MPI_Wait", what);
    transmit(piece + kRingPieces);
  }
}

void MpiCommunicator::do_allgather(const void* mine, std::size_t bytes, void* all, const char* what) {
  if (bytes == 0) return;
  char* const to = static_cast<char*>(all);
  char* const own = to + static_cast<std::size_t>(rank()) * bytes;
  if (bytes <= native_->max_message_bytes) {
    const bool in_place = mine == own;
    check(MPI_Allgather(in_place ? MPI_IN_PLACE : mine, static_cast<int>(bytes), MPI_BYTE, all,
                        static_cast<int>(bytes), MPI_BYTE, native_->comm),
          "MPI_Allgather", what);
    return;
  }
  if (mine != own) std::memcpy(own, mine, bytes);
  const int right = (rank() + 1) % size(), left = (rank() + size() - 1) % size();
  for (int step = 0; step < size() - 1; ++step) {  // a ring: forwards the block received last
    const auto outgoing = static_cast<std::size_t>((rank() - step + size()) % size());
    const auto incoming = static_cast<std::size_t>((rank() - step - 1 + size()) % size());
    do_exchange(to + outgoing * bytes, bytes, right, to + incoming * bytes, bytes, left, what);
  }
}

void MpiCommunicator::do_broadcast(void* data, std::size_t bytes, int root, const char* what) {
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t piece = std::min(bytes - done, native_->max_message_bytes);
    check(MPI_Bcast(static_cast<char*>(data) + done, static_cast<int>(piece), MPI_BYTE, root, native_->comm),
          "MPI_Bcast", what);
    done += piece;
  }
}

void MpiCommunicator::do_barrier(const char* what) { check(MPI_Barrier(native_->comm), "MPI_Barrier", what); }

void MpiCommunicator::do_allreduce_sum_fast(float* data, std::size_t count, const char* what) {
  const std::size_t most = native_->max_message_bytes / sizeof(float);
  for (std::size_t done = 0; done < count;) {
    const std::size_t piece = std::min(count - done, most);
    check(
        MPI_Allreduce(MPI_IN_PLACE, data + done, static_cast<int>(piece), MPI_FLOAT, MPI_SUM, native_->comm),
        "MPI_Allreduce", what);
    done += piece;
  }
}

}  // namespace lockstep
