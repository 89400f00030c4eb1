// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi_watchdog_peers.h"

#include <mpi.h>

#include <chrono>
#include <thread>

#include "comm/mpi_error.h"

namespace lockstep {

namespace {

constexpr int kQuestion = 1, kAnswer = 2;
constexpr const char* kWhere = "the watchdog";

// The number of a question comes back with its answer, so that one that is late is not taken for a new one.
struct Answer {
  std::int64_t number = 0;
  RankStatus status;
};

// All messages are short enough to be sent eagerly: a send does not wait for its receiver.
class MpiWatchdogPeers final : public WatchdogPeers {
 public:
  MpiWatchdogPeers() {
    check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup", kWhere);
    check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", kWhere);
    check_mpi(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank", kWhere);
    check_mpi(MPI_Comm_size(comm_, &size_), "MPI_Comm_size", kWhere);
  }

  void answer(const RankStatus& mine) override {
    for (int from = 0; probe(kQuestion, from);) {
      check_mpi(MPI_Recv(nullptr, 0, MPI_BYTE, from, kQuestion, comm_, MPI_STATUS_IGNORE), "MPI_Recv",
                kWhere);
      check_mpi(MPI_Send(&mine, sizeof mine, MPI_BYTE, from, kAnswer, comm_), "MPI_Send", kWhere);
    }
  }

  std::vector<std::optional<RankStatus>> ask_all(const RankStatus& mine, double seconds) override {
    using Clock = std::chrono::steady_clock;
    ++number_;
    for (int rank = 0; rank < size_; ++rank)
      if (rank != rank_)
        check_mpi(MPI_Send(nullptr, 0, MPI_BYTE, rank, kQuestion, comm_), "MPI_Send", kWhere);
    std::vector<std::optional<RankStatus>> others(static_cast<std::size_t>(size_));
    const auto until = Clock::now() + std::chrono::duration<double>(seconds);
    for (int missing = size_ - 1; missing > 0 && Clock::now() < until;) {
      answer(mine);
      int from = 0;
      if (!probe(kAnswer, from)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        continue;
      }
      RankStatus other;
      check_mpi(MPI_Recv(&other, sizeof other, MPI_BYTE, from, kAnswer, comm_, MPI_STATUS_IGNORE), "MPI_Recv",
                kWhere);
      missing -= others[static_cast<std::size_t>(from)] ? 0 : 1;
      others[static_cast<std::size_t>(from)] = other;
    }
    return others;
  }

 private:
  bool probe(int tag, int& from) const {
    int found = 0;
    MPI_Status status;
    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, tag, comm_, &found, &status), "MPI_Iprobe", kWhere);
    if (found != 0) from = status.MPI_SOURCE;
    return found != 0;
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 0;
  std::int64_t number_ = 0;
};

}  // namespace

std::unique_ptr<WatchdogPeers> make_mpi_watchdog_peers() { return std::make_unique<MpiWatchdogPeers>(); }

}  // namespace lockstep
