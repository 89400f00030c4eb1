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

// An answer carries the number of its question, so that a late answer is not taken for a new one.
struct Answer {
  std::int64_t number = 0;
  RankStatus status;
};

// No function waits for another rank: over a network a send to a lost host never completes, however short the
// message. While a message to a rank is pending, no further message is sent to it.
class MpiWatchdogPeers final : public WatchdogPeers {
 public:
  MpiWatchdogPeers() {
    check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup", kWhere);
    check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", kWhere);
    check_mpi(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank", kWhere);
    check_mpi(MPI_Comm_size(comm_, &size_), "MPI_Comm_size", kWhere);
    to_.resize(static_cast<std::size_t>(size_));
  }

  void answer(const RankStatus& mine) override {
    for (int from = 0; probe(kQuestion, from);) {
      std::int64_t number = 0;
      check_mpi(MPI_Recv(&number, sizeof number, MPI_BYTE, from, kQuestion, comm_, MPI_STATUS_IGNORE),
                "MPI_Recv", kWhere);
      Outgoing& to = to_[static_cast<std::size_t>(from)];
      if (!is_free(to, to.answer_request)) continue;
      to.answer = {number, mine};
      send(to, &to.answer, sizeof to.answer, from, kAnswer, to.answer_request);
    }
  }

  std::vector<std::optional<RankStatus>> ask_all(const RankStatus& mine, double seconds) override {
    using Clock = std::chrono::steady_clock;
    ++number_;
    for (int rank = 0; rank < size_; ++rank) {
      Outgoing& to = to_[static_cast<std::size_t>(rank)];
      if (rank == rank_ || !is_free(to, to.question_request)) continue;
      to.question = number_;
      send(to, &to.question, sizeof to.question, rank, kQuestion, to.question_request);
    }
    std::vector<std::optional<RankStatus>> others(static_cast<std::size_t>(size_));
    const auto until = Clock::now() + std::chrono::duration<double>(seconds);
    for (int missing = size_ - 1; missing > 0 && Clock::now() < until;) {
      answer(mine);
      int from = 0;
      if (!probe(kAnswer, from)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        continue;
      }
      Answer other;
      check_mpi(MPI_Recv(&other, sizeof other, MPI_BYTE, from, kAnswer, comm_, MPI_STATUS_IGNORE), "MPI_Recv",
                kWhere);
      if (other.number != number_) continue;
      missing -= others[static_cast<std::size_t>(from)] ? 0 : 1;
      others[static_cast<std::size_t>(from)] = other.status;
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

  // The messages to one rank, and the memory that they are sent from.
  struct Outgoing {
    MPI_Request question_request = MPI_REQUEST_NULL, answer_request = MPI_REQUEST_NULL;
    std::int64_t question = 0;
    Answer answer;
    bool broken = false;  // the library reports that this rank cannot be reached
  };

  static bool is_free(Outgoing& to, MPI_Request& request) {
    int done = 0;
    if (!to.broken) to.broken = MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS;
    return !to.broken && done != 0;
  }
  void send(Outgoing& to, const void* data, std::size_t bytes, int rank, int tag,
            MPI_Request& request) const {
    to.broken = MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, rank, tag, comm_, &request) != MPI_SUCCESS;
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<Outgoing> to_;
  int rank_ = 0, size_ = 0;
  std::int64_t number_ = 0;
};

}  // namespace

std::unique_ptr<WatchdogPeers> make_mpi_watchdog_peers() { return std::make_unique<MpiWatchdogPeers>(); }

}  // namespace lockstep
