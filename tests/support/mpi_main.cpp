// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// GoogleTest's main for tests under mpirun: initialises MPI once, prints one report of all ranks' failures,
// and returns the same exit code on all ranks.
//
// After each test the ranks agree on a private communicator, so a test that fails on one rank fails the run.
// An exception that leaves a test is fatal: the ranks are then in different calls, and the run is aborted.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "comm/environment.h"
#include "core/log.h"
#include "support/mpi_environment.h"
#include "support/mpi_world.h"

namespace lockstep {

namespace {

Communicator* g_world = nullptr;
CommEnvironment* g_environment = nullptr;

// Collects this rank's failures of one test. Rank 0 prints those of all ranks in order.
class MpiListener : public testing::EmptyTestEventListener {
 public:
  explicit MpiListener(Communicator& world) : private_(world.duplicate("test listener")) {}
  int num_failed_tests() const { return num_failed_tests_; }

 private:
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.skipped() && private_->rank() == 0) std::printf("skipped: %s\n", result.message());
    if (!result.failed()) return;
    std::string text = fmt::format("[rank {}] {}:{}\n{}\n", private_->rank(),
                                   result.file_name() == nullptr ? "?" : result.file_name(),
                                   result.line_number(), result.message());
    if (result.fatally_failed()) {
      // The test ends here on this rank, and other ranks may wait for it: the collected text might never be
      // printed.
      std::fputs(text.c_str(), stderr);
      text = fmt::format("[rank {}] a fatal failure, printed above\n", private_->rank());
    }
    failures_ += text;
    if (std::string(result.message()).find("C++ exception") != std::string::npos) {
      std::fputs("the ranks are no longer in the same call: abort\n", stderr);
      private_->abort(1);
    }
  }

  void OnTestEnd(const testing::TestInfo& info) override {
    const std::uint64_t mine = failures_.size();
    const auto ranks = static_cast<std::size_t>(private_->size());
    std::vector<std::uint64_t> lengths(ranks);
    private_->allgather(&mine, sizeof mine, lengths.data(), "test listener");
    bool failed = false;
    for (int rank = 0; rank < private_->size(); ++rank) {
      const std::uint64_t length = lengths[static_cast<std::size_t>(rank)];
      if (length == 0) continue;
      failed = true;
      std::string text = rank == private_->rank() ? failures_ : std::string(length, '\0');
      private_->broadcast(text.data(), length, rank, "test listener");
      if (private_->rank() == 0) std::fputs(text.c_str(), stdout);
    }
    num_failed_tests_ += failed ? 1 : 0;
    failures_.clear();
    if (private_->rank() == 0) {
      std::printf("[%s] %s.%s (%d ranks, %lld ms)\n", failed ? "FAILED" : "  OK  ", info.test_suite_name(),
                  info.name(), private_->size(), static_cast<long long>(info.result()->elapsed_time()));
      std::fflush(stdout);
    }
  }

  std::unique_ptr<Communicator> private_;
  std::string failures_;
  int num_failed_tests_ = 0;
};

int run_all_tests(CommEnvironment& environment) {
  Communicator& world = environment.world();
  const char* expected = std::getenv("LOCKSTEP_TEST_RANKS");
  if (expected != nullptr && std::atoi(expected) != world.size()) {
    std::fprintf(stderr, "this test needs %s ranks and has %d\n", expected, world.size());
    environment.abort(1);
  }
  g_world = &world;
  g_environment = &environment;
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  auto* listener = new MpiListener(world);  // owned by GoogleTest
  listeners.Append(listener);
  const int code = RUN_ALL_TESTS();
  if (world.rank() == 0)
    std::printf("%d tests on %d ranks, %d failed\n", testing::UnitTest::GetInstance()->test_to_run_count(),
                world.size(), listener->num_failed_tests());
  const bool failed = code != 0 || listener->num_failed_tests() > 0;
  environment.finalize();
  return failed ? 1 : 0;
}

}  // namespace

Communicator& test_world() { return *g_world; }
CommEnvironment& test_environment() { return *g_environment; }

}  // namespace lockstep

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  lockstep::CommEnvironment environment({.timeout_seconds = 60});
  lockstep::configure_log(environment.world().rank(), lockstep::LogLevel::info);
  try {
    return lockstep::run_all_tests(environment);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", environment.world().rank(), error.what());
    environment.abort(1);
  }
}
