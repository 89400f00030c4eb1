// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi_watchdog_peers.h"

#include <mpi.h>

#include <chrono>
#include <thread>
#include <utility>

#include "comm/mpi_communicator.h"
#include "comm/mpi_error.h"
#include "comm/mpi_group.h"

namespace lockstep {

namespace {

// Tags are two for each use of the group, so that a late question or answer is not taken for one of this use.
constexpr int kUses = 16'000;
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
  explicit MpiWatchdogPeers(MpiCommunicator& ranks)
      : group_(ranks.group().duplicate("watchdog")),
        comm_(group_.comm()),
        rank_(ranks.rank()),
        size_(ranks.size()),
        question_(1 + group_.use() % kUses * 2),
        answer_(question_ + 1),
        to_(static_cast<std::size_t>(size_)) {}

  // A message to a rank that has gone may be on its way for ever, from memory of this object.
  ~MpiWatchdogPeers() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0) return;
    bool pending = false;
    for (Outgoing& to : to_)
      pending = pending || !is_free(to, to.question_request) || !is_free(to, to.answer_request);
    if (pending) new std::vector<Outgoing>(std::move(to_));  // NOLINT: left on purpose
    group_.give_back(!pending);
  }

  void answer(const RankStatus& mine) override {
    for (int from = 0; probe(question_, from);) {
      std::int64_t number = 0;
      check_mpi(MPI_Recv(&number, sizeof number, MPI_BYTE, from, question_, comm_, MPI_STATUS_IGNORE),
                "MPI_Recv", kWhere);
      Outgoing& to = to_[static_cast<std::size_t>(from)];
      if (!is_free(to, to.answer_request)) continue;
      to.answer = {number, mine};
      send(to, &to.answer, sizeof to.answer, from, answer_, to.answer_request);
    }
  }

  std::vector<std::optional<RankStatus>> ask_all(const RankStatus& mine, double seconds) override {
    using Clock = std::chrono::steady_clock;
    ++number_;
    for (int rank = 0; rank < size_; ++rank) {
      Outgoing& to = to_[static_cast<std::size_t>(rank)];
      if (rank == rank_ || !is_free(to, to.question_request)) continue;
      to.question = number_;
      send(to, &to.question, sizeof to.question, rank, question_, to.question_request);
    }
    std::vector<std::optional<RankStatus>> others(static_cast<std::size_t>(size_));
    const auto until = Clock::now() + std::chrono::duration<double>(seconds);
    for (int missing = size_ - 1; missing > 0 && Clock::now() < until;) {
      answer(mine);
      int from = 0;
      if (!probe(answer_, from)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        continue;
      }
      Answer other;
      check_mpi(MPI_Recv(&other, sizeof other, MPI_BYTE, from, answer_, comm_, MPI_STATUS_IGNORE), "MPI_Recv",
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

  MpiGroup& group_;
  const MPI_Comm comm_;
  const int rank_, size_, question_, answer_;
  std::vector<Outgoing> to_;
  std::int64_t number_ = 0;
};

}  // namespace

std::unique_ptr<WatchdogPeers> make_mpi_watchdog_peers(MpiCommunicator& ranks) {
  return std::make_unique<MpiWatchdogPeers>(ranks);
}

}  // namespace lockstep
