// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/run_changes.h"

#include <algorithm>
#include <filesystem>

#include "comm/shared_error.h"
#include "comm/startup_check.h"
#include "config/yaml_node.h"
#include "core/log.h"
#include "core/message_lines.h"
#include "core/run_file.h"
#include "core/shown_text.h"
#include "io/atomic_file.h"
#include "run/sections/config_values.h"
#include "run/sections/configuration_file.h"
#include "run/setup/balance_classes.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

std::string configs_folder(const std::string& run_dir) { return (fs::path(run_dir) / "configs").string(); }

std::string job_config_path(const std::string& run_dir, int job) {
  return (fs::path(configs_folder(run_dir)) / fmt::format("job-{:04}.yaml", job)).string();
}

/// The number in "job-0012.yaml"; 0: another file.
int job_number(const std::string& name) {
  int number = 0;
  char rest = 0;
  return std::sscanf(name.c_str(), "job-%d.yam%c", &number, &rest) == 2 && rest == 'l' ? number : 0;
}

int newest_job(const std::string& run_dir) {
  int newest = 0;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(configs_folder(run_dir), failed))
    newest = std::max(newest, job_number(entry.path().filename().string()));
  return newest;
}

std::vector<ConfigValue> values_of(const std::string& text, const std::string& name) {
  Node root = parse_yaml(text, name);
  replace_variables(root);
  const Node* base = root.find("base_directory");
  return config_values(root, base != nullptr ? base->text : "");
}

std::vector<ConfigDifference> only(std::span<const ConfigDifference> differences, Change change) {
  std::vector<ConfigDifference> chosen;
  std::ranges::copy_if(differences, std::back_inserter(chosen),
                       [&](const ConfigDifference& d) { return d.change == change; });
  return chosen;
}

/// Hooks and evaluations may end a run early.
bool concerns_end(const ConfigDifference& difference) {
  const std::string& path = difference.path;
  return path == "train.epochs" || path == "train.steps" || path.starts_with("hooks") ||
         path.starts_with("eval.");
}

/// The last job had these values: it was given --accept-changes, and has ended before its first checkpoint.
bool last_job_had(const std::string& run_dir, const std::vector<ConfigValue>& values) {
  const int job = newest_job(run_dir);
  if (job == 0) return false;
  try {
    const std::string path = job_config_path(run_dir, job);
    return only(config_differences(values_of(read_whole_file(path), path), values), Change::result).empty();
  } catch (const Error& error) {
    log_warning("{}", message_of(error));
    return false;
  }
}

/// The length of a run changes the result where a schedule lasts until its end.
bool changes_end(const std::vector<ConfigDifference>& result) {
  return std::ranges::any_of(result, [](const ConfigDifference& difference) {
    return difference.path == "train.epochs" || difference.path == "train.steps";
  });
}

Error refusal(const std::vector<ConfigDifference>& differences, const FoundCheckpoint& found,
              const std::string& run_dir) {
  return error_of_lines(
      ErrorKind::config,
      fmt::format("the run is at step {}, and {} of its configuration would change the result:{}",
                  found.header.global_step,
                  differences.size() == 1 ? "a value" : fmt::format("{} values", differences.size()),
                  diff_text(differences)),
      run_dir,
      fmt::format("{}Continue with the run's own configuration (lockstep train {}), begin another run "
                  "(--run-dir), or change this run from here on (--accept-changes).",
                  changes_end(differences)
                      ? "A schedule lasts until the end of the run, and another end makes it another "
                        "schedule; a length of its own (decay_steps, total_steps) does not follow. "
                      : "",
                  shown_text(run_dir)));
}

std::string text_of(const DataChange& change) {
  return fmt::format("the {}data", change.train && change.eval ? "training and evaluation "
                                   : change.train              ? "training "
                                   : change.eval               ? "evaluation "
                                                               : "place of the ");
}

bool are_other_data(const DataChange& change, const RunChanges& changes) {
  return change.train || change.eval || (change.unknown && changes.places);
}

Error data_refusal(const Config& config, const DataChange& change) {
  return config.error(
      "", "data", fmt::format("{} changed since the run began", text_of(change)),
      fmt::format(
          "Give the data of the run, begin another run (--run-dir), or continue with these "
          "(--accept-changes{}).",
          config.data.format == "program" ? "; in the program TrainOptions::accept_new_samples" : ""));
}

}  // namespace

RunChanges changes_of_run(Communicator& world, const Config& config, const FoundCheckpoint& found,
                          const std::string& run_dir, bool accept) {
  if (!found.exists() || found.header.config.empty()) return {};
  // A model function may have given another configuration on one rank: what follows must be the same on all.
  shared([&] { require_same(world, std::vector<NamedText>{{"configuration", to_yaml(config.root)}}); });
  // All ranks have both configurations. Only the chief reads that of the last job.
  const std::vector<ConfigValue> values = config_values(config.root, config.base_directory);
  const std::vector<ConfigDifference> all =
      shared([&] { return config_differences(values_of(found.header.config, found.path), values); });
  const std::vector<ConfigDifference> result = only(all, Change::result), free = only(all, Change::free),
                                      places = only(all, Change::place);
  const bool is_chief = world.rank() == 0;
  std::string accepted;
  if (!result.empty()) {
    bool had = is_chief && last_job_had(run_dir, values);
    world.broadcast(&had, sizeof had, 0, "had the last job this configuration");
    if (!accept && !had) throw SharedError(refusal(result, found, run_dir));
    if (is_chief)
      accepted =
          fmt::format("from step {} on the configuration is another one{}:{}", found.header.global_step,
                      had ? ", as in the last job" : " (--accept-changes)", diff_text(result));
  }
  if (!free.empty() && is_chief)
    log_info("changed since step {}, without effect on the result:{}", found.header.global_step,
             MessageLines{diff_text(free)});
  if (!places.empty() && is_chief) log_info("the data are elsewhere:{}", MessageLines{diff_text(places)});
  return {.result = !result.empty(),
          .accepted = std::move(accepted),
          .end = !result.empty() || std::ranges::any_of(free, concerns_end),
          .places = !places.empty()};
}

void check_data_of_run(RunContext& context, JobRecorder& job, const RunChanges& changes,
                       const FoundCheckpoint& found, AcceptedData accepted) {
  RunStatus* const status = job.status();  // of the chief
  const JobData mine{context.train_data().fingerprint(),
                     context.eval_data() != nullptr ? context.eval_data()->fingerprint() : ""};
  DataChange change;
  if (status != nullptr && found.exists())
    change = data_change(status->before(), found.header.global_step, mine);
  context.world().broadcast(&change, sizeof change, 0, "have the data changed");
  const bool changed = are_other_data(change, changes);
  const bool accepts = accepted == AcceptedData::all ||
                       (accepted == AcceptedData::new_samples && (change.train || change.eval));
  if (changed && !accepts) throw SharedError(data_refusal(context.config(), change));
  if (changed) compare_class_counts(context.world(), *context.model().heads, context.train_set());
  if (status == nullptr) return;
  if (changed && accepted == AcceptedData::new_samples)
    log_info("from step {} on {} are others (accept_new_samples)", found.header.global_step, text_of(change));
  else if (changed)
    log_warning("{} changed since the run began (--accept-changes)", text_of(change));
  else if (changes.places)
    log_info("the data have the same contents as before");
  status->set_data(mine);
}

void require_data_of_run(const Config& config, const std::string& run_dir, std::int64_t step,
                         const JobData& mine, const RunChanges& changes) {
  const DataChange change = data_change(read_jobs(run_dir), step, mine);
  if (are_other_data(change, changes)) throw data_refusal(config, change);
}

void keep_job_config(const std::string& run_dir, int job, const std::string& text) {
  make_run_folder(run_dir, "configs", ErrorKind::config);
  write_file_atomically(job_config_path(run_dir, std::max(job, newest_job(run_dir) + 1)), text);
}

}  // namespace lockstep
