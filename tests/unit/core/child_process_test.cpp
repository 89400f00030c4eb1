// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/child_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include "core/error.h"

namespace lockstep {
namespace {

TEST(ChildProcess, EndsByItself) {
  const pid_t here = ::getpid();
  int changed = 0;
  EXPECT_EQ(run_in_child([&] { changed = 1; }), std::nullopt);
  EXPECT_EQ(changed, 0) << "the child has a copy";
  EXPECT_EQ(run_in_child([] { throw std::runtime_error("a"); }), std::nullopt);
  EXPECT_EQ(run_in_child([] { throw Error(ErrorKind::data, "b"); }), std::nullopt);
  EXPECT_EQ(::getpid(), here);
}

TEST(ChildProcess, Crashes) {
  EXPECT_EQ(run_in_child([] { std::raise(SIGSEGV); }), "crashes (SIGSEGV)");
  EXPECT_EQ(run_in_child([] { std::raise(SIGABRT); }), "crashes (SIGABRT)");
  EXPECT_EQ(run_in_child([] { ::_exit(7); }), "ends the process (exit code 7)");
}

TEST(ChildProcess, Limits) {
  const auto busy = [] {
    for (std::atomic<int> i = 0;; ++i) {
    }
  };
  EXPECT_EQ(run_in_child(busy, {.cpu_seconds = 1, .seconds = 60}), "is busy for more than 1 s");
  const auto asleep = [] { std::this_thread::sleep_for(std::chrono::seconds(60)); };
  EXPECT_EQ(run_in_child(asleep, {.cpu_seconds = 60, .seconds = 0.2}), std::nullopt) << "a slow file system?";
}

TEST(ChildProcess, WritesNothingToTheTerminal) {
  ::testing::internal::CaptureStdout();
  std::printf("before ");
  run_in_child([] {
    std::printf("child");
    std::fflush(stdout);
  });
  std::fflush(stdout);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "before ");
}

TEST(ChildProcess, NoteOutlivesTheChild) {
  ChildNote note;
  run_in_child([&] {
    note.set("first");
    note.set("second");
    std::raise(SIGSEGV);
  });
  EXPECT_EQ(note.text(), "second");
  note.set(std::string(100000, 'x'));
  EXPECT_EQ(note.text(), std::string(8191, 'x'));
}

}  // namespace
}  // namespace lockstep
