// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/fault.h"

#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>

#include "core/error.h"
#include "core/scalar.h"

namespace lockstep {

namespace {

// Every kind of fault, grouped by where it is injected.
constexpr std::string_view kKinds[] = {
    // in a step
    "exit", "kill", "stop", "exception", "sleep", "nan_gradient", "flipped_bit", "skipped_collective",
    "extra_collective", "lost_gpu_groups", "differing_config",
    // while a checkpoint is written: io/fault_points.h
    "ENOSPC", "EIO", "EIO_fsync", "short_write", "slow_write", "kill_in_write", "kill_before_fsync",
    "kill_before_rename", "kill_after_rename", "replaced_checkpoint", "removed_checkpoint",
    // while data files are copied: io/stage_copy.cpp
    "ENOSPC_in_stage", "flipped_bit_in_stage", "kill_in_stage"};

struct Planned {
  Fault fault;
  std::atomic<bool> done{false};
};

std::deque<Planned>& planned() {
  static std::deque<Planned> all = [] {
    std::deque<Planned> faults;
    if (const char* text = std::getenv("LOCKSTEP_FAULT"))
      for (Fault& fault : parse_faults(text)) faults.emplace_back().fault = std::move(fault);
    return faults;
  }();
  return all;
}

std::atomic<int> run_rank{0};
std::atomic<std::int64_t> run_step{0};
constexpr std::int64_t kNone = -1;
thread_local std::int64_t thread_step = kNone;

}  // namespace

std::vector<Fault> parse_faults(std::string_view text) {
  const auto wrong = [&](std::string_view part) {
    return Error(ErrorKind::usage, fmt::format("'{}' is not step:rank:kind", part), "LOCKSTEP_FAULT",
                 fmt::format("Kinds: {}.", fmt::join(kKinds, ", ")));
  };
  std::vector<Fault> faults;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const std::size_t first = part.find(':');
    const std::size_t second = first == std::string_view::npos ? first : part.find(':', first + 1);
    if (second == std::string_view::npos) throw wrong(part);
    const auto step = parse_integer(std::string(part.substr(0, first)));
    const auto rank = parse_integer(std::string(part.substr(first + 1, second - first - 1)));
    const std::string_view kind = part.substr(second + 1);
    if (!step || *step < 0 || !rank || *rank < 0 || *rank > 1'000'000 ||
        std::find(std::begin(kKinds), std::end(kKinds), kind) == std::end(kKinds))
      throw wrong(part);
    faults.push_back({*step, static_cast<int>(*rank), std::string(kind)});
  }
  return faults;
}

void plan_faults(std::string_view text) {
  planned().clear();
  for (Fault& fault : parse_faults(text)) planned().emplace_back().fault = std::move(fault);
}

void set_fault_rank(int rank) {
  planned();
  run_rank = rank;
}

void set_fault_step(std::int64_t step) { run_step = step; }

bool fault_is(std::string_view kind) {
  LOCKSTEP_CHECK(std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds),
                 "the kind '{}' is not in the table of fault.cpp", kind);
  const std::int64_t step = FaultStep::present() ? thread_step : run_step.load();
  for (Planned& plan : planned())
    if (plan.fault.kind == kind && plan.fault.rank == run_rank && step >= plan.fault.step &&
        !plan.done.exchange(true))
      return true;
  return false;
}

bool faults_planned() { return !planned().empty(); }

void fault_kill(std::string_view kind) {
  if (fault_is(kind)) ::raise(SIGKILL);
}

FaultStep::FaultStep(std::int64_t step) : previous_(thread_step) { thread_step = step; }
FaultStep::~FaultStep() { thread_step = previous_; }
bool FaultStep::present() { return thread_step != kNone; }

}  // namespace lockstep
