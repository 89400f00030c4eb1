// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/watchdog.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <map>
#include <span>
#include <string_view>

#include "comm/startup_check.h"
#include "core/start_thread.h"

namespace lockstep {

namespace {

constexpr int kCallsShown = 16;
constexpr double kLongestNap = 0.5;      // seconds between two checks
constexpr double kAnswerSeconds = 2;     // time for the others to answer
constexpr double kLowerRankSeconds = 4;  // time for a lower rank to end the run
constexpr std::size_t kGroupsShown = 20;
constexpr int kRanksShown = 16;  // ranks whose last calls are shown
constexpr double kAskAgainSeconds = 1;

std::atomic<double> g_timeout_seconds{0};
std::atomic<bool> g_is_patient{false};

template <std::size_t N>
void put(std::array<char, N>& to, std::string_view text) {
  const std::size_t length = std::min(text.size(), N - 1);
  std::memcpy(to.data(), text.data(), length);
  to[length] = '\0';
}

double seconds_open(const FlightRecorder::Call& call) {
  return std::chrono::duration<double>(FlightRecorder::Clock::now() - call.begin).count();
}

double nap_seconds(double limit) {
  return limit > 0 ? std::clamp(limit / 8, 0.01, kLongestNap) : kLongestNap;
}

std::string in_phase(const std::array<char, 64>& phase) {
  return phase.front() == '\0' ? std::string() : fmt::format(" (phase '{}')", phase.data());
}

enum class Place { no_answer, outside_calls, in_call };

// A line for the ranks that are at one place.
struct RanksAtPlace {
  Place place;
  std::string text;
};

// One line per state of ranks. Unresponsive ranks and ranks outside any call, the likely culprits, come
// first.
std::vector<RanksAtPlace> places(const WatchdogIdentity& identity,
                                 const std::vector<std::optional<RankStatus>>& others) {
  std::map<std::pair<Place, std::string>, std::vector<int>> groups;
  std::map<std::string, double> longest;
  for (int rank = 0; rank < static_cast<int>(others.size()); ++rank) {
    if (rank == identity.rank) continue;
    const auto& other = others[static_cast<std::size_t>(rank)];
    if (!other) {
      const auto i = static_cast<std::size_t>(rank);
      const std::string host = i < identity.hosts.size() ? identity.hosts[i] : "";
      groups[{Place::no_answer, fmt::format("no answer{}: dead, stopped, disconnected, or already finished",
                                            host.empty() ? "" : " from host " + host)}]
          .push_back(rank);
      continue;
    }
    const std::string place = other->in_call != 0
                                  ? fmt::format("waiting in '{}'{} on host {}", other->call.data(),
                                                in_phase(other->phase), other->host.data())
                                  : fmt::format("in no communication call{} on host {}",
                                                in_phase(other->phase), other->host.data());
    groups[{other->in_call != 0 ? Place::in_call : Place::outside_calls, place}].push_back(rank);
    longest[place] = std::max(longest[place], other->seconds);
  }
  std::vector<RanksAtPlace> all;
  for (const auto& [key, ranks] : groups) {
    std::string text =
        fmt::format("{} {}: {}", ranks.size() == 1 ? "rank" : "ranks", rank_list(ranks), key.second);
    if (key.first != Place::no_answer) text += fmt::format(", for {:.0f} s", longest[key.second]);
    all.push_back({key.first, std::move(text)});
  }
  return all;
}

// Which ranks the others wait for, as far as that is known.
std::string culprits(std::span<const RanksAtPlace> all) {
  if (all.empty()) return "another rank is late";
  if (all.front().place == Place::in_call)
    return "ranks wait in communication calls that do not match, or that never end";
  std::string text;
  for (const RanksAtPlace& ranks : all)
    if (ranks.place == all.front().place) text += (text.empty() ? "" : "; ") + ranks.text;
  return text;
}

// The last calls of the other ranks, one line each; with many ranks, those of the likely culprits.
std::string calls_of_others(const WatchdogIdentity& identity,
                            const std::vector<std::optional<RankStatus>>& others) {
  std::vector<int> ranks;
  for (int rank = 0; rank < static_cast<int>(others.size()); ++rank)
    if (const auto& other = others[static_cast<std::size_t>(rank)];
        rank != identity.rank && other && other->num_past > 0)
      ranks.push_back(rank);
  std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) {
    return others[static_cast<std::size_t>(a)]->in_call < others[static_cast<std::size_t>(b)]->in_call;
  });
  std::string text;
  for (const int rank : ranks) {
    if (rank == ranks[std::min<std::size_t>(kRanksShown, ranks.size() - 1)] && ranks.size() > kRanksShown)
      return text + fmt::format("  ... and {} other ranks\n", ranks.size() - kRanksShown);
    const RankStatus& other = *others[static_cast<std::size_t>(rank)];
    text += fmt::format("  rank {}:", rank);
    for (int i = 0; i < std::min<int>(other.num_past, RankStatus::kPastCalls); ++i) {
      const RankStatus::PastCall& call = other.past[static_cast<std::size_t>(i)];
      text += fmt::format("{} #{} '{}' {:.3f} s ago", i == 0 ? "" : ",", call.number, call.name.data(),
                          call.seconds_ago);
    }
    text += "\n";
  }
  return text;
}

}  // namespace

bool is_host_lost(const WatchdogIdentity& identity, const std::vector<std::optional<RankStatus>>& others) {
  if (others.size() != identity.hosts.size()) return false;
  std::map<std::string_view, bool> answers;
  for (std::size_t rank = 0; rank < others.size(); ++rank)
    if (identity.hosts[rank] != identity.host)
      answers[identity.hosts[rank]] = answers[identity.hosts[rank]] || others[rank].has_value();
  return std::any_of(answers.begin(), answers.end(), [](const auto& host) { return !host.second; });
}

PatientWait::PatientWait() { g_is_patient = true; }
PatientWait::~PatientWait() { g_is_patient = false; }

double communication_timeout_seconds() { return g_timeout_seconds.load(std::memory_order_relaxed); }

std::string watchdog_message(const WatchdogIdentity& identity, const FlightRecorder::Call& call,
                             double waited_seconds, const std::vector<std::optional<RankStatus>>& others) {
  const std::string phase = flight_recorder().phase();
  const std::vector<RanksAtPlace> all =
      others.empty() ? std::vector<RanksAtPlace>() : places(identity, others);
  std::string text = fmt::format("error: the run hangs: {}\n", culprits(all));
  text += fmt::format("  rank {} of {} on host {} has waited {:.0f} s in '{}'", identity.rank, identity.ranks,
                      identity.host, waited_seconds, call.name.data());
  if (call.peer >= 0 && call.peer != identity.rank) text += fmt::format(" for rank {}", call.peer);
  if (!phase.empty()) text += fmt::format(" (phase '{}')", phase);
  text += "; the run ends here.\n";
  if (others.empty())
    text += "  Another rank is late: it reads input, writes a checkpoint, is dead or stopped.\n";
  else
    text += "  Where the other ranks are:\n";
  for (std::size_t i = 0; i < all.size() && i < kGroupsShown; ++i) text += "  " + all[i].text + "\n";
  if (all.size() > kGroupsShown) text += "  ... and other places\n";
  text += fmt::format("  The last calls of rank {}, oldest first:\n{}", identity.rank,
                      flight_recorder().last_calls(kCallsShown));
  if (const std::string calls = calls_of_others(identity, others); !calls.empty())
    text += "  The last calls of the other ranks, oldest first:\n" + calls;
  return text;
}

Watchdog::Watchdog(double timeout_seconds, WatchdogIdentity identity, std::unique_ptr<WatchdogPeers> peers,
                   Expired expired)
    : identity_(std::move(identity)), peers_(std::move(peers)), expired_(std::move(expired)) {
  g_timeout_seconds = timeout_seconds;
  thread_ = start_thread("watchdog thread", [this] { serve(); });
}

void Watchdog::set_timeout_seconds(double seconds) {
  g_timeout_seconds = seconds;
  wake_.notify_all();
}

void Watchdog::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::serve() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    wake_.wait_for(lock, std::chrono::duration<double>(nap_seconds(communication_timeout_seconds())));
    if (stop_) return;
    try {
      if (look(lock)) return;
    } catch (const std::exception& error) {
      peers_failed_ = error.what();
      peers_.reset();  // continue without the others
    }
  }
}

// Checks the open calls once. Returns true if it has ended the run.
bool Watchdog::look(std::unique_lock<std::mutex>& lock) {
  if (peers_) peers_->answer(status());
  const double limit = communication_timeout_seconds();
  const auto call = flight_recorder().oldest_open();
  if (limit <= 0 || !call || seconds_open(*call) <= limit) return false;
  if (!peers_ && identity_.ranks > 1 && peers_failed_.empty() &&
      (g_is_patient || seconds_open(*call) <= kLongPhaseFactor * limit))
    return false;
  std::vector<std::optional<RankStatus>> others;
  if (peers_) {
    if (FlightRecorder::Clock::now() < ask_again_) return false;
    others = peers_->ask_all(status(), kAnswerSeconds);
    if (is_excused(others, limit)) {
      ask_again_ = FlightRecorder::Clock::now() +
                   std::chrono::duration_cast<FlightRecorder::Clock::duration>(
                       std::chrono::duration<double>(std::min(kAskAgainSeconds, limit)));
      return false;
    }
    if (a_lower_rank_speaks(others, limit)) {
      const double patience =
          kLowerRankSeconds + (is_host_lost(identity_, others) ? identity_.launcher_seconds : 0);
      const auto until = FlightRecorder::Clock::now() + std::chrono::duration<double>(patience);
      while (!stop_ && FlightRecorder::Clock::now() < until) {
        wake_.wait_for(lock, std::chrono::milliseconds(50));
        peers_->answer(status());
      }
    }
  }
  // The call may have ended while the others were asked.
  const auto now = flight_recorder().oldest_open();
  if (stop_ || !now || now->number != call->number) return false;
  std::string message = watchdog_message(identity_, *call, seconds_open(*call), others);
  if (!peers_failed_.empty())
    message += fmt::format("  The watchdogs cannot exchange messages: {}\n", peers_failed_);
  expired_(message, is_host_lost(identity_, others));
  return true;
}

RankStatus Watchdog::status() const {
  RankStatus mine;
  put(mine.host, identity_.host);
  mine.phase = flight_recorder().phase_text();
  mine.may_take_long = flight_recorder().phase_may_take_long() ? 1 : 0;
  std::array<FlightRecorder::Call, RankStatus::kPastCalls> past;
  mine.num_past = flight_recorder().last_calls(past);
  for (std::size_t i = 0; i < static_cast<std::size_t>(mine.num_past); ++i) {
    mine.past[i].number = past[i].number;
    mine.past[i].seconds_ago =
        std::chrono::duration<double>(FlightRecorder::Clock::now() - past[i].end).count();
    put(mine.past[i].name, past[i].name.data());
  }
  if (const auto call = flight_recorder().oldest_open()) {
    mine.in_call = 1;
    mine.seconds = seconds_open(*call);
    mine.call = call->name;
  } else {
    mine.seconds = flight_recorder().seconds_since_last_call();
  }
  return mine;
}

// True if all ranks answer, and this one is patient or one of them is in a long phase: outside any
// communication call, or in one that is within the limit.
bool Watchdog::is_excused(const std::vector<std::optional<RankStatus>>& others, double limit) const {
  bool excused = g_is_patient;
  for (int rank = 0; rank < static_cast<int>(others.size()); ++rank) {
    if (rank == identity_.rank) continue;
    const auto& other = others[static_cast<std::size_t>(rank)];
    if (!other) return false;
    const double patience = other->in_call != 0 ? limit : kLongPhaseFactor * limit;
    excused = excused || (other->may_take_long != 0 && other->seconds < patience);
  }
  return excused;
}

bool Watchdog::a_lower_rank_speaks(const std::vector<std::optional<RankStatus>>& others, double limit) const {
  for (int rank = 0; rank < identity_.rank; ++rank)
    if (const auto& other = others[static_cast<std::size_t>(rank)];
        other && other->in_call != 0 && other->seconds > limit - 2 * nap_seconds(limit))
      return true;
  return false;
}

}  // namespace lockstep
