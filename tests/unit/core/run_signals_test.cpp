// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Each test runs in its own process, because the effects of signals last for the life of a process.
#include "core/run_signals.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

namespace lockstep {
namespace {

void install() {
  install_run_signals([](const char*) -> const char* { return nullptr; });
}

TEST(RunSignals, FirstStopCountsAndIntTakesPrecedence) {
  const auto story = [] {
    install();
    if (stop_signal() != 0) std::_Exit(1);
    std::raise(SIGTERM);
    if (stop_signal() != SIGTERM) std::_Exit(2);
    std::raise(SIGUSR1);
    if (stop_signal() != SIGTERM) std::_Exit(3);
    std::raise(SIGINT);
    if (stop_signal() != SIGINT) std::_Exit(4);
    std::_Exit(0);
  };
  EXPECT_EXIT(story(), testing::ExitedWithCode(0), "");
}

TEST(RunSignals, Usr2CountsSavesAndDoesNotStop) {
  const auto story = [] {
    install();
    std::raise(SIGUSR2);
    std::raise(SIGUSR2);
    std::_Exit(save_signals() == 2 && stop_signal() == 0 ? 0 : 1);
  };
  EXPECT_EXIT(story(), testing::ExitedWithCode(0), "");
}

TEST(RunSignals, SecondIntAfterASecondKills) {
  const auto story = [] {
    install();
    std::raise(SIGINT);
    std::raise(SIGINT);
    std::this_thread::sleep_for(std::chrono::duration<double>(kSecondInterruptSeconds + 0.05));
    std::raise(SIGINT);
    std::_Exit(0);
  };
  EXPECT_EXIT(story(), testing::KilledBySignal(SIGINT), "ending at once, without saving");
}

volatile std::sig_atomic_t noted = 0;
void note(int) { noted = noted + 1; }

TEST(RunSignals, TheProgramsHandlerIsCalledTooAndIsThereAgainAfterwards) {
  const auto story = [] {
    std::signal(SIGINT, note);
    {
      const RunSignals outer([](const char*) -> const char* { return nullptr; });
      const RunSignals inner([](const char*) -> const char* { return nullptr; });
      std::raise(SIGINT);
      if (stop_signal() != SIGINT || noted != 1) std::_Exit(1);
    }
    std::raise(SIGINT);
    if (noted != 2) std::_Exit(2);
    struct sigaction now {};
    if (::sigaction(SIGTERM, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) std::_Exit(3);
    const RunSignals next([](const char*) -> const char* { return nullptr; });
    std::_Exit(stop_signal() == 0 ? 0 : 4);
  };
  EXPECT_EXIT(story(), testing::ExitedWithCode(0), "");
}

TEST(RunSignals, ASecondIntIsLeftToAProgramThatHandlesIt) {
  const auto story = [] {
    std::signal(SIGINT, note);
    const RunSignals signals([](const char*) -> const char* { return nullptr; });
    std::raise(SIGINT);
    std::this_thread::sleep_for(std::chrono::duration<double>(kSecondInterruptSeconds + 0.05));
    std::raise(SIGINT);
    std::_Exit(noted == 2 ? 0 : 1);
  };
  EXPECT_EXIT(story(), testing::ExitedWithCode(0), "");
}

TEST(RunSignals, ContNotFromMpirunIsIgnored) {
  const auto story = [] {
    install_run_signals([](const char* name) -> const char* {
      return std::string_view(name) == "OMPI_MCA_orte_local_daemon_uri" ? "tcp://here" : nullptr;
    });
    std::raise(SIGCONT);
    std::_Exit(stop_signal());
  };
  EXPECT_EXIT(story(), testing::ExitedWithCode(0), "");
}

TEST(RunSignals, IgnoredHupStaysIgnored) {
  const auto story = [](bool ignored) {
    if (ignored) std::signal(SIGHUP, SIG_IGN);
    install();
    std::raise(SIGHUP);
    std::_Exit(stop_signal());
  };
  EXPECT_EXIT(story(false), testing::ExitedWithCode(SIGHUP), "");
  EXPECT_EXIT(story(true), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace lockstep
