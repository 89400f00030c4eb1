// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "comm/startup_check.h"
#include "comm/tree.h"
#include "core/shown_text.h"
#include "driver/commands/replay.h"
#include "io/json.h"

namespace lockstep {

namespace {

struct EnvironmentDifference {
  std::string name, recorded, here;
};

std::vector<EnvironmentDifference> environment_differences(const StepRecord& recorded,
                                                           const StepRecord& repeated) {
  std::vector<EnvironmentDifference> found;
  for (const auto& [name, value] : recorded.environment) {
    const auto here =
        std::ranges::find(repeated.environment, name, &std::pair<std::string, std::string>::first);
    const std::string other = here == repeated.environment.end() ? "unknown" : here->second;
    if (other != value) found.push_back({name, value, other});
  }
  return found;
}

/// Ranks of the recorded run that computed these microshards.
std::vector<int> ranks_of(const StepRecord& recorded, const RecordDifference& difference) {
  if (!recorded.rows[difference.row].per_microshard) return difference.places;
  std::vector<int> ranks;
  for (const int shard : difference.places)
    if (const int rank = rank_of_shard(shard, recorded.ranks(), recorded.microshards());
        ranks.empty() || ranks.back() != rank)
      ranks.push_back(rank);
  return ranks;
}

std::string with_hosts(const StepRecord& recorded, const std::vector<int>& ranks) {
  std::vector<std::string> hosts;
  for (const int rank : ranks)
    if (const std::string& host = recorded.hosts[static_cast<std::size_t>(rank)];
        std::ranges::find(hosts, host) == hosts.end())
      hosts.push_back(host);
  return shown_format("{} {} on {} {}", ranks.size() == 1 ? "rank" : "ranks", rank_list(ranks),
                      hosts.size() == 1 ? "host" : "hosts", fmt::join(hosts, ", "));
}

/// "microshard 3, computed by rank 1 on host b".
std::string places_text(const StepRecord& recorded, const RecordDifference& difference) {
  const RecordRow& row = recorded.rows[difference.row];
  if (row.per_microshard)
    return shown_format("{} {} of {}, computed by {}",
                        difference.places.size() == 1 ? "microshard" : "microshards",
                        rank_list(difference.places), recorded.microshards(),
                        with_hosts(recorded, ranks_of(recorded, difference)));
  return row.hashes.size() == 1
             ? shown_format("all ranks had this alike")
             : "the ranks did not have this alike: " + with_hosts(recorded, ranks_of(recorded, difference));
}

std::string count(std::size_t n, const char* what) {
  return shown_format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string as_text(const StepRecord& recorded, const StepRecord& repeated,
                    const std::vector<RecordDifference>& found) {
  const std::size_t rows = std::min(recorded.rows.size(), repeated.rows.size());
  std::string text = shown_format("step {}, recorded on {}, repeated on {}: ", recorded.step,
                                  count(static_cast<std::size_t>(recorded.ranks()), "rank"),
                                  count(static_cast<std::size_t>(repeated.ranks()), "rank"));
  const auto unlike = environment_differences(recorded, repeated);
  if (found.empty()) {
    text += shown_format("equal, layer by layer ({}, {}, loss {:.6g})\n", count(rows, "row"),
                         count(recorded.samples.size(), "microshard"), recorded.loss);
  } else {
    const RecordDifference& first = found.front();
    text += shown_format(
        "it differs\n  first in order of execution: {}\n    {}\n  {} of {} differ; what ran before is equal\n"
        "  loss {:.9g} there, {:.9g} here\n",
        row_text(recorded.rows[first.row]), places_text(recorded, first), found.size(), count(rows, "row"),
        recorded.loss, repeated.loss);
    if (recorded.rows[first.row].stage == "input")
      text +=
          "  The samples differ: the data has changed, or a hook feeds samples, which replay does not do.\n";
    else if (unlike.empty())
      text +=
          "  Build, instruction set, libraries and data are as they were: the state before the step was\n"
          "  changed, a rank computed wrongly (memory, processor), or it is a defect.\n";
  }
  if (!unlike.empty()) {
    text += found.empty() ? "  although these are not as they were:\n"
                          : "  These are not as they were, and bits may depend on them:\n";
    for (const EnvironmentDifference& one : unlike)
      text += shown_format("    {}: {} there, {} here\n", one.name, one.recorded, one.here);
  }
  if (recorded.rows.size() < repeated.rows.size())
    text += "  The run did not come to the end of this step: variables afterwards are not compared.\n";
  return text;
}

Json difference_json(const StepRecord& recorded, const RecordDifference& difference) {
  const RecordRow& row = recorded.rows[difference.row];
  Json json = {{"row", difference.row}, {"stage", row.stage}, {"layer", row.layer}, {"what", row.what}};
  if (row.per_microshard) json["microshards"] = difference.places;
  json["ranks"] = ranks_of(recorded, difference);
  return json;
}

std::string as_json(const StepRecord& recorded, const StepRecord& repeated,
                    const std::vector<RecordDifference>& found) {
  Json json = {{"step", recorded.step},
               {"equal", found.empty()},
               {"rows", std::min(recorded.rows.size(), repeated.rows.size())},
               {"microshards", recorded.samples.size()},
               {"recorded_on", recorded.hosts},
               {"loss", {{"recorded", recorded.loss}, {"repeated", repeated.loss}}}};
  json["differences"] = Json::array();
  for (const RecordDifference& one : found) json["differences"].push_back(difference_json(recorded, one));
  json["environment"] = Json::array();
  for (const EnvironmentDifference& one : environment_differences(recorded, repeated))
    json["environment"].push_back({{"name", one.name}, {"recorded", one.recorded}, {"here", one.here}});
  return json.dump(2) + "\n";
}

}  // namespace

std::string replay_report(const StepRecord& recorded, const StepRecord& repeated, bool json) {
  const std::vector<RecordDifference> found = differences(recorded, repeated);
  return json ? as_json(recorded, repeated, found) : as_text(recorded, repeated, found);
}

}  // namespace lockstep
