// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "core/shown_text.h"
#include "view/trace/trace_profile.h"

namespace lockstep {

namespace {

constexpr std::size_t kMostLayers = 20, kMostRanks = 16;

/// The time of each span without that of the spans inside it, on the same thread.
std::vector<double> own_times(const std::vector<ProfileSpan>& spans) {
  std::vector<std::size_t> order(spans.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    const ProfileSpan &one = spans[a], &two = spans[b];
    return std::tuple(one.rank, one.thread, one.begin, -one.duration) <
           std::tuple(two.rank, two.thread, two.begin, -two.duration);
  });
  std::vector<double> own(spans.size());
  std::vector<std::size_t> open;
  for (const std::size_t i : order) {
    const ProfileSpan& span = spans[i];
    own[i] = span.duration;
    while (!open.empty()) {
      const ProfileSpan& outer = spans[open.back()];
      if (outer.rank == span.rank && outer.thread == span.thread && span.begin < outer.begin + outer.duration)
        break;
      open.pop_back();
    }
    if (!open.empty()) own[open.back()] -= span.duration;
    open.push_back(i);
  }
  return own;
}

struct RankTimes {
  std::map<std::string, double> by_category;  ///< of the thread "main", microseconds
  double begin = 1e300, end = 0;
  double waited = 0, made_wait = 0;  ///< in collective calls, for others; others for it
  int last = 0;                      ///< collective calls to which it came last
};

struct LayerTimes {
  double forward = 0, backward = 0;  ///< of all threads and ranks
};

std::string share(double part, double whole) {
  return whole > 0 ? shown_format("{:.1f} %", 100 * part / whole) : "-";
}

void add_ranks(std::string& text, const TraceProfile& profile, const std::map<int, RankTimes>& ranks) {
  text += shown_format("\n{:<6}{:>10}{:>9}{:>10}{:>9}{:>15}{:>9}{:>8}\n", "rank", "ms/step", "forward",
                       "backward", "update", "communication", "waiting", "input");
  std::size_t shown = 0;
  for (const auto& [rank, times] : ranks) {
    if (++shown > kMostRanks) {
      text += shown_format("and {} ranks more\n", ranks.size() - kMostRanks);
      break;
    }
    const double all = times.end - times.begin;
    const auto part = [&, &categories = times.by_category](const char* category) {
      const auto found = categories.find(category);
      return share(found == categories.end() ? 0 : found->second, all);
    };
    text += shown_format("{:<6}{:>10.3f}{:>9}{:>10}{:>9}{:>15}{:>9}{:>8}\n", rank,
                         1e-3 * all / static_cast<double>(profile.steps()), part("forward"), part("backward"),
                         part("update"), part("communication"), part("waiting"), part("input"));
  }
}

void add_waits(std::string& text, const TraceProfile& profile, const std::map<int, RankTimes>& ranks) {
  if (ranks.size() < 2) return;
  text += shown_format("\n{:<6}{:>18}{:>22}{:>32}\n", "rank", "waits, ms/step", "came last, per step",
                       "others waited for it, ms/step");
  std::vector<std::pair<int, RankTimes>> order(ranks.begin(), ranks.end());
  std::ranges::stable_sort(order, std::greater(), [](const auto& one) { return one.second.made_wait; });
  const auto steps = static_cast<double>(profile.steps());
  for (std::size_t i = 0; i < std::min(order.size(), kMostRanks); ++i) {
    const auto& [rank, times] = order[i];
    text += shown_format("{:<6}{:>18.3f}{:>22.1f}{:>32.3f}\n", rank, 1e-3 * times.waited / steps,
                         times.last / steps, 1e-3 * times.made_wait / steps);
  }
}

void add_layers(std::string& text, const TraceProfile& profile,
                const std::map<std::string, LayerTimes>& layers) {
  std::vector<std::pair<std::string, LayerTimes>> order(layers.begin(), layers.end());
  std::ranges::stable_sort(order, std::greater(),
                           [](const auto& one) { return one.second.forward + one.second.backward; });
  double all = 0;
  for (const auto& [name, times] : order) all += times.forward + times.backward;
  const double runs = static_cast<double>(profile.steps()) *
                      static_cast<double>(std::max<std::size_t>(profile.ranks.size(), 1));
  text += shown_format("\n{:<28}{:>14}{:>14}{:>10}\n", "layer (ms of threads/step)", "forward", "backward",
                       "share");
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == kMostLayers) {
      text += shown_format("and {} more\n", order.size() - kMostLayers);
      break;
    }
    const auto& [name, times] = order[i];
    text += shown_format("{:<28}{:>14.3f}{:>14.3f}{:>10}\n", name.substr(0, 27), 1e-3 * times.forward / runs,
                         1e-3 * times.backward / runs, share(times.forward + times.backward, all));
  }
}

}  // namespace

std::string trace_summary(const TraceProfile& profile) {
  std::map<int, RankTimes> ranks;
  for (const auto& [rank, name] : profile.ranks) ranks[rank];
  std::map<std::string, LayerTimes> layers;
  const std::vector<double> own = own_times(profile.spans);
  for (std::size_t i = 0; i < profile.spans.size(); ++i) {
    const ProfileSpan& span = profile.spans[i];
    RankTimes& times = ranks[span.rank];
    times.begin = std::min(times.begin, span.begin);
    times.end = std::max(times.end, span.begin + span.duration);
    const auto thread = profile.threads.find({span.rank, span.thread});
    if (thread != profile.threads.end() && thread->second.starts_with("main"))
      times.by_category[span.category] += own[i];
    if (span.category == "forward") layers[span.name].forward += own[i];
    if (span.category == "backward") layers[span.name].backward += own[i];
  }
  std::map<std::tuple<int, int, double>, bool> calls;  // of the rank that came last: its call
  for (const ProfileArrow& arrow : profile.arrows) {
    if (arrow.waited < 0) continue;
    ranks[arrow.to_rank].waited += arrow.waited;
    ranks[arrow.from_rank].made_wait += arrow.waited;
    if (calls.emplace(std::tuple(arrow.from_rank, arrow.from_thread, arrow.begin), true).second)
      ++ranks[arrow.from_rank].last;
  }
  std::string text =
      shown_format("{}\nsteps {} to {}, {} rank{}, {} arrows, clocks of ranks within {:.1f} us\n",
                   profile.path, profile.first_step, profile.last_step, ranks.size(),
                   ranks.size() == 1 ? "" : "s", profile.arrows.size(), profile.clock_error);
  add_ranks(text, profile, ranks);
  add_waits(text, profile, ranks);
  add_layers(text, profile, layers);
  return text;
}

}  // namespace lockstep
