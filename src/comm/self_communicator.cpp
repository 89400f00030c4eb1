// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/self_communicator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/error.h"

namespace lockstep {

std::unique_ptr<Communicator> SelfCommunicator::duplicate(std::string name) {
  return std::make_unique<SelfCommunicator>(std::move(name));
}

std::unique_ptr<Communicator> SelfCommunicator::split_by_host(std::string name) {
  return std::make_unique<SelfCommunicator>(std::move(name));
}

void SelfCommunicator::abort(int code) noexcept {
  std::fflush(nullptr);
  std::_Exit(code);
}

void SelfCommunicator::do_exchange(const void* send, std::size_t send_bytes, int, void* recv,
                                   std::size_t recv_bytes, int, const char* what) {
  LOCKSTEP_CHECK(send_bytes == recv_bytes, "'{}' sends {} bytes to itself and expects {}", what, send_bytes,
                 recv_bytes);
  if (send_bytes > 0) std::memmove(recv, send, send_bytes);
}

void SelfCommunicator::do_exchange_pieces(const void* send, std::size_t send_bytes, std::size_t recv_bytes,
                                          int, void*, std::size_t piece_bytes, Arrived arrived,
                                          const char* what) {
  LOCKSTEP_CHECK(send_bytes == recv_bytes, "'{}' sends {} bytes to itself and expects {}", what, send_bytes,
                 recv_bytes);
  for (std::size_t offset = 0; offset < recv_bytes; offset += piece_bytes)
    arrived(offset, static_cast<const char*>(send) + offset, std::min(piece_bytes, recv_bytes - offset));
}

void SelfCommunicator::do_exchange_many(std::span<const OutMessage> out, std::span<const InMessage> in,
                                        const char* what) {
  LOCKSTEP_CHECK(out.size() == in.size(), "'{}' sends {} messages to itself and expects {}", what, out.size(),
                 in.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    do_exchange(out[i].data, out[i].bytes, 0, in[i].data, in[i].bytes, 0, what);
}

void SelfCommunicator::do_allgather(const void* mine, std::size_t bytes, void* all, const char*) {
  if (bytes > 0 && mine != all) std::memcpy(all, mine, bytes);
}

void SelfCommunicator::do_broadcast(void*, std::size_t, int, const char*) {}
void SelfCommunicator::do_barrier(const char*) {}
void SelfCommunicator::do_allreduce_sum_fast(float*, std::size_t, const char*) {}

}  // namespace lockstep
