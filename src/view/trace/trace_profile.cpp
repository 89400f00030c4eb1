// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/trace/trace_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "io/atomic_file.h"
#include "io/json.h"
#include "session/trace_file.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

Error no_profile(const std::string& path, const std::string& why) {
  return {ErrorKind::data, "is no profile of a run: " + why, path,
          "Profiles are written by the hook 'profile': hooks: [{profile: {first_step: 10, last_step: 14}}]."};
}

/// The arrows of pairs of flow events; an end without its begin is an error.
std::vector<ProfileArrow> arrows_of(const std::map<std::int64_t, const Json*>& begins,
                                    const std::vector<const Json*>& ends) {
  std::vector<ProfileArrow> arrows;
  for (const Json* const last : ends) {
    const Json& end = *last;
    const Json& begin = *begins.at(end.at("id").get<std::int64_t>());
    arrows.push_back({.name = end.at("name").string(),
                      .from_rank = begin.at("pid").get<int>(),
                      .from_thread = begin.at("tid").get<int>(),
                      .to_rank = end.at("pid").get<int>(),
                      .to_thread = end.at("tid").get<int>(),
                      .begin = begin.at("ts").get<double>(),
                      .end = end.at("ts").get<double>(),
                      .waited = end.contains("args") ? end["args"].at("waited_us").get<double>() : -1});
  }
  return arrows;
}

void add_events(TraceProfile& profile, const Json& events) {
  std::map<std::int64_t, const Json*> begins;
  std::vector<const Json*> ends;
  for (const Json& event : events) {
    const std::string &phase = event.at("ph").string(), &name = event.at("name").string();
    const int rank = event.at("pid").get<int>();
    if (phase == "X") {
      profile.spans.push_back({.category = event.at("cat").string(),
                               .name = name,
                               .rank = rank,
                               .thread = event.at("tid").get<int>(),
                               .begin = event.at("ts").get<double>(),
                               .duration = event.at("dur").get<double>()});
    } else if (phase == "M" && name == "process_name") {
      profile.ranks[rank] = event.at("args").at("name").string();
    } else if (phase == "M" && name == "thread_name") {
      profile.threads[{rank, event.at("tid").get<int>()}] = event.at("args").at("name").string();
    } else if (phase == "s") {
      begins.emplace(event.at("id").get<std::int64_t>(), &event);
    } else if (phase == "f") {
      ends.push_back(&event);
    }
  }
  profile.arrows = arrows_of(begins, ends);
}

/// The events of a merged file. Threads have the same number in all profiles.
class Merger {
 public:
  void add(const TraceProfile& profile, double shift) {
    for (const auto& [rank, name] : profile.ranks)
      if (ranks_.emplace(rank, name).second) {
        put({{"args", {{"name", name}}}, {"name", "process_name"}, {"ph", "M"}, {"pid", rank}});
        put({{"args", {{"sort_index", rank}}}, {"name", "process_sort_index"}, {"ph", "M"}, {"pid", rank}});
      }
    std::map<std::pair<int, int>, int> numbers;
    for (const auto& [place, name] : profile.threads) numbers[place] = number_of(place.first, name);
    put({{"name", fmt::format("profile of steps {} to {}", profile.first_step, profile.last_step)},
         {"ph", "i"},
         {"pid", 0},
         {"s", "g"},
         {"tid", 1},
         {"ts", shift}});
    for (const ProfileSpan& span : profile.spans)
      put({{"cat", span.category},
           {"dur", span.duration},
           {"name", span.name},
           {"ph", "X"},
           {"pid", span.rank},
           {"tid", numbers[{span.rank, span.thread}]},
           {"ts", span.begin + shift}});
    for (const ProfileArrow& arrow : profile.arrows) {
      ++arrows_;
      put({{"cat", "flow"},
           {"id", arrows_},
           {"name", arrow.name},
           {"ph", "s"},
           {"pid", arrow.from_rank},
           {"tid", numbers[{arrow.from_rank, arrow.from_thread}]},
           {"ts", arrow.begin + shift}});
      Json end;
      if (arrow.waited >= 0) end["args"] = {{"waited_us", arrow.waited}};
      end.update({{"bp", "e"},
                  {"cat", "flow"},
                  {"id", arrows_},
                  {"name", arrow.name},
                  {"ph", "f"},
                  {"pid", arrow.to_rank},
                  {"tid", numbers[{arrow.to_rank, arrow.to_thread}]},
                  {"ts", arrow.end + shift}});
      put(end);
    }
  }
  const std::string& text() const { return text_; }

 private:
  void put(const Json& event) {
    if (!text_.empty()) text_ += ",\n";
    text_ += event.dump();
  }
  int number_of(int rank, const std::string& name) {
    auto& threads = threads_[rank];
    const auto [found, added] =
        threads.emplace(name, trace_thread_id(rank, static_cast<int>(threads.size()) + 1));
    if (added)
      put({{"args", {{"name", name}}},
           {"name", "thread_name"},
           {"ph", "M"},
           {"pid", rank},
           {"tid", found->second}});
    return found->second;
  }

  std::string text_;
  std::map<int, std::string> ranks_;
  std::map<int, std::map<std::string, int>> threads_;
  std::int64_t arrows_ = 0;
};

}  // namespace

TraceProfile read_profile(const std::string& path) {
  TraceProfile profile{.path = path};
  if (std::sscanf(fs::path(path).filename().c_str(), "trace-%ld-%ld.json", &profile.first_step,
                  &profile.last_step) != 2)
    throw no_profile(path, "its name is not trace-FIRST-LAST.json");
  const Json json = Json::parse_or_null(read_whole_file(path));
  if (json.is_null()) throw no_profile(path, "it is no JSON, or not complete");
  try {
    const Json& other = json["otherData"];
    profile.begin_time = other.value("begin_time", 0.0);
    for (const Json& clock : other["clocks"])
      profile.clock_error = std::max(profile.clock_error, clock.value("error_us", 0.0));
    add_events(profile, json.at("traceEvents"));
  } catch (const JsonError& error) {
    throw no_profile(path, error.what());
  } catch (const std::out_of_range&) {
    throw no_profile(path, "an arrow ends that does not begin");
  }
  return profile;
}

std::vector<TraceProfile> read_profiles(const std::string& run_dir) {
  std::vector<std::string> paths;
  std::error_code code;
  for (fs::directory_iterator at(run_dir + "/profile", code), end; !code && at != end; at.increment(code))
    if (const std::string name = at->path().filename().string();
        name.starts_with("trace-") && name.ends_with(".json"))
      paths.push_back(at->path().string());
  if (paths.empty())
    throw Error(ErrorKind::config, "there are no profiles", run_dir + "/profile",
                "The hook 'profile' writes them: hooks: [{profile: {first_step: 10, last_step: 14}}].");
  std::ranges::sort(paths);
  std::vector<TraceProfile> profiles;
  for (const std::string& path : paths) profiles.push_back(read_profile(path));
  return profiles;
}

std::string merged_trace(std::vector<TraceProfile> profiles) {
  constexpr double kSecond = 1e6;
  std::ranges::stable_sort(profiles, {}, &TraceProfile::begin_time);
  const double begin_time = profiles.front().begin_time;
  double end = 0, clock_error = 0;
  Merger merger;
  for (const TraceProfile& profile : profiles) {
    // Two profiles of one time come from copies of a clock that was set back: they follow each other.
    const double shift = std::max((profile.begin_time - begin_time) * kSecond, end);
    merger.add(profile, shift);
    for (const ProfileSpan& span : profile.spans) end = std::max(end, shift + span.begin + span.duration);
    clock_error = std::max(clock_error, profile.clock_error);
  }
  const Json other{{"begin_time", begin_time},
                   {"clock_error_us", clock_error},
                   {"format", 1},
                   {"profiles", profiles.size()}};
  return fmt::format("{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\"traceEvents\":[\n{}\n]}}\n",
                     other.dump(), merger.text());
}

}  // namespace lockstep
