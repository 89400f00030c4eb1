// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/sweep/sweep_run.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include "comm/agree.h"
#include "comm/flight_recorder.h"
#include "comm/share_text.h"
#include "comm/shared_error.h"
#include "config/yaml_node.h"
#include "core/log.h"
#include "core/log_once.h"
#include "core/message_lines.h"
#include "core/scalar.h"
#include "core/shown_text.h"
#include "io/atomic_file.h"
#include "optim/optimizer.h"
#include "run/sections/config_values.h"
#include "run/setup/run_context.h"
#include "run/setup/run_size.h"
#include "run/setup/training_check.h"
#include "run/setup/training_directory.h"
#include "session/number_text.h"
#include "session/run_record.h"
#include "tools/sweep/sweep_files.h"
#include "tools/sweep/sweep_page.h"
#include "tools/sweep/sweep_table.h"
#include "tools/sweep/trial_run.h"
#include "train/run_schedules.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kDifferencesShown = 8;

class SweepRun {
 public:
  SweepRun(CommEnvironment& environment, const SweepPlan& plan, const SweepJob& job)
      : environment_(environment), world_(environment.world()), plan_(plan), job_(job) {}

  SweepOutcome run() {
    const std::unique_ptr<RunLock> lock = take_run_directory(world_, job_.sweep_dir);
    show_each_warning_once();
    begin();
    split();
    try_base();
    log_begin();
    for (std::size_t rung = 0; rung < plan_.rungs.size() && !interruption_.any(); ++rung) run_rung(rung);
    end();
    return {exit_code(interruption_.kind), records_};
  }

 private:
  bool is_chief() { return world_.rank() == 0; }
  bool leads_group() { return group_->world().rank() == 0; }
  std::string stop_file() const { return job_.sweep_dir + "/STOP"; }

  /// For people, from the first rank of a group.
  void say(const std::string& text) {
    if (is_chief()) {
      log_info("{}", text);
    } else if (!job_.quiet && leads_group()) {
      std::fputs((shown_text(shown_message(text)) + "\n").c_str(), stderr);
    }
  }

  /// The folder of the sweep: a new one, or what is known of its trials.
  void begin() {
    shared([&] {
      std::string known;
      agree(
          world_,
          [&] {
            if (plan_.base.data.failure) throw Error(*plan_.base.data.failure);
            if (!is_chief()) return;
            const std::string path = job_.sweep_dir + "/sweep.yaml";
            std::error_code code;
            if (fs::exists(path, code))
              compare_with(path);
            else
              check_is_new();
            clear_claims(job_.sweep_dir);
            fs::remove(stop_file(), code);
            known = read_records(job_.sweep_dir, plan_.trials.size());
            log_to_file(job_.sweep_dir + "/lockstep.log");
          },
          "opening the folder of the sweep");
      records_.assign(plan_.trials.size(), {});
      for (auto& [trial, record] : parse_records(broadcast_text(world_, known, "the records of trials")))
        records_[trial] = std::move(record);
      world_.broadcast(&shards_, sizeof shards_, 0, "the shards of the sweep");
      choose_shards_of_sweep();
      agree(
          world_,
          [&] {
            if (is_chief()) write_file_atomically(job_.sweep_dir + "/sweep.yaml", sweep_text(plan_, shards_));
          },
          "writing sweep.yaml");
    });
  }

  void check_is_new() {
    std::error_code code;
    if (fs::exists(job_.sweep_dir + "/config.yaml", code))
      throw Error(ErrorKind::config, "this is the run directory of a single run", job_.sweep_dir,
                  "Give the sweep a folder of its own with --run-dir.");
  }

  /// The folder has a sweep already: it must be this one. Takes its shards.
  void compare_with(const std::string& path) {
    const Node before = read_yaml(path);
    if (const Node* shards = before.find("shards")) shards_ = parse_integer(shards->text).value_or(0);
    const std::string now = sweep_text(plan_, shards_);
    const std::vector<ConfigDifference> all =
        config_differences(config_values(before, plan_.base.base_directory),
                           config_values(parse_yaml(now, "now"), plan_.base.base_directory));
    std::vector<ConfigDifference> wrong;
    std::ranges::copy_if(all, std::back_inserter(wrong), [](const ConfigDifference& one) {
      return one.path.starts_with("sweep.") ? one.path != "sweep.groups" : one.change != Change::free;
    });
    if (wrong.empty()) return;
    const std::size_t count = wrong.size();
    wrong.resize(std::min(count, kDifferencesShown));
    throw error_of_lines(ErrorKind::config,
                         fmt::format("the folder has another sweep, which differs in {} value{}:{}", count,
                                     count == 1 ? "" : "s", diff_text(wrong)),
                         job_.sweep_dir,
                         "Begin another sweep (--run-dir), or leave the configuration as it was.");
  }

  /// As `lockstep train` on all ranks would choose them: trials must not depend on the number of groups.
  void choose_shards_of_sweep() {
    if (plan_.base.general.shards || shards_ != 0) return;
    shards_ = choose_shards(plan_.base, std::nullopt, world_.size()) / plan_.base.train.accumulate;
  }

  void split() {
    shared([&] {
      const std::int64_t wanted = job_.groups.value_or(plan_.options.groups.value_or(world_.size()));
      if (wanted > world_.size())
        throw Error(
            ErrorKind::config,
            fmt::format("{} groups need at least {} ranks, and there are {}", wanted, wanted, world_.size()),
            "sweep.groups", "Start more ranks, or give fewer groups (--groups).");
      groups_ = static_cast<int>(std::min(wanted, static_cast<std::int64_t>(plan_.trials.size())));
    });
    color_ = group_of(world_.rank(), world_.size(), groups_);
    group_ = environment_.split(color_);
  }

  /// The sweep's own configuration must be one that could train, and must give the metric.
  void try_base() {
    std::optional<SharedError> error;
    configure_log(world_.rank(), LogLevel::warning);
    try {
      RunContext context(*group_, plan_.base, std::nullopt, {.train = true, .eval = true});
      shared([&] {
        const RunSchedules schedules(context.optimizer(), *context.model().graph, plan_.base.average);
        check_names(plan_.base, run_names(plan_.base, context.model(), context.train_set(),
                                          context.eval_set(), schedules));
      });
    } catch (const SharedError& thrown) {
      error = thrown;
    }
    restore_log();
    together(error, "trying the configuration of the sweep");
  }

  /// Waits for all groups. All ranks throw the error that a group has.
  void together(const std::optional<SharedError>& error, const char* what) {
    set_phase(what);
    environment_.wait_for_all(what);
    shared([&] {
      agree(
          world_,
          [&] {
            if (error) throw *error;
          },
          what);
    });
  }

  void restore_log() {
    configure_log(world_.size() > 1 ? world_.rank() : -1, job_.quiet ? LogLevel::warning : LogLevel::info);
    if (is_chief()) log_to_file(job_.sweep_dir + "/lockstep.log");
  }

  void log_begin() {
    if (!is_chief()) return;
    std::string ends;
    for (const Rung& rung : plan_.rungs)
      if (rung.end) ends += fmt::format("{} after {}, ", rung.trials, plan_.end_text(rung));
    log_info("sweep: {} trials, {}{} to the end; {} group{} of {} ranks; {} {} is the best",
             plan_.trials.size(), ends, plan_.rungs.back().trials, groups_, groups_ == 1 ? "" : "s",
             world_.size(), plan_.options.larger_is_better ? "the largest" : "the smallest",
             plan_.options.metric);
    std::size_t known = 0;
    for (const TrialRecord& record : records_) known += !record.results.empty() || !record.error.empty();
    if (known > 0) log_info("sweep: continues, {} trials have results already", known);
  }

  /// A signal, the end of the job's time or the file STOP, as all ranks of the group see it.
  InterruptionRequest interruption_of_group() {
    InterruptionSources sources;
    sources.add(signal_request);
    sources.add([&]() -> InterruptionRequest {
      if (!job_.job_end || unix_time() < job_.job_end->time) return {};
      return {Interruption::requeue, static_cast<int>(InterruptionReason::time_limit)};
    });
    if (leads_group()) sources.add([&] { return look_for_stop_file(stop_file()); });
    return agreed(group_->world(), sources.look(), "interruptions of the group");
  }

  void run_rung(std::size_t rung) {
    const std::vector<std::size_t> members =
        members_of(records_, plan_.rungs, rung, plan_.options.larger_is_better);
    std::map<std::size_t, TrialRecord> news;
    std::optional<SharedError> error;
    try {
      for (const std::size_t trial : members) {
        if (!records_[trial].error.empty() || records_[trial].results.size() > rung) continue;
        interruption_ = interruption_of_group();
        if (interruption_.any()) break;
        if (!take(rung, trial)) continue;
        const TrialOutcome outcome = run_one(rung, trial);
        if (outcome.exit_code != 0) {
          interruption_.kind =
              outcome.exit_code == exit_code(Interruption::user) ? Interruption::user : Interruption::requeue;
          break;
        }
        TrialRecord record = records_[trial];
        record.error = outcome.error;
        if (outcome.error.empty()) record.results.push_back(outcome.result);
        keep(trial, record);
        news[trial] = std::move(record);
      }
      if (interruption_.any()) ask_others_to_stop();
    } catch (const SharedError& thrown) {
      error = thrown;
    }
    together(error, "the end of a rung");
    share(news);
  }

  void ask_others_to_stop() {
    shared([&] {
      agree(
          group_->world(),
          [&] {
            if (leads_group()) write_stop_file(stop_file(), interruption_.kind);
          },
          "stopping the other groups");
    });
  }

  bool take(std::size_t rung, std::size_t trial) {
    return shared([&] {
      int mine = 0;
      agree(
          group_->world(),
          [&] {
            if (leads_group()) mine = claim(job_.sweep_dir, rung, trial) ? 1 : 0;
          },
          "claiming a trial");
      group_->world().broadcast(&mine, sizeof mine, 0, "claiming a trial");
      return mine != 0;
    });
  }

  TrialOutcome run_one(std::size_t rung, std::size_t trial) {
    std::string settings;
    for (const KeySetting& setting : plan_.trials[trial])
      settings += fmt::format(" {}={}", setting.key, setting.value);
    TrialOutcome outcome;
    std::optional<Config> config;
    try {
      config = trial_config(plan_, trial, shards_);
    } catch (const Error& error) {
      outcome.error = error.what();
    }
    if (config) {
      configure_log(world_.rank(), LogLevel::warning);
      outcome = run_trial(*group_, *config,
                          {.run_dir = trial_folder(job_.sweep_dir, trial),
                           .stop_file = stop_file(),
                           .end = plan_.rungs[rung].end,
                           .in_epochs = plan_.in_epochs,
                           .metric = plan_.options.metric,
                           .job_end = job_.job_end});
      restore_log();
    }
    if (outcome.exit_code != 0)
      say(fmt::format("trial {}:{}: interrupted", trial, settings));
    else if (!outcome.error.empty())
      say(fmt::format("trial {}:{}: failed: {}", trial, settings, outcome.error));
    else
      say(fmt::format("trial {}:{}: {} {} at step {}", trial, settings, plan_.options.metric,
                      number_text(outcome.result.value), outcome.result.step));
    return outcome;
  }

  void keep(std::size_t trial, const TrialRecord& record) {
    shared([&] {
      agree(
          group_->world(),
          [&] {
            if (leads_group()) write_record(job_.sweep_dir, trial, plan_.trials[trial], record);
          },
          "writing the record of a trial");
    });
  }

  /// All ranks learn what all groups have found, and whether one was interrupted.
  void share(const std::map<std::size_t, TrialRecord>& news) {
    for (const std::string& text :
         gather_texts(world_, leads_group() ? to_text(news) : "{}", "the results of a rung"))
      for (auto& [trial, record] : parse_records(text)) records_[trial] = std::move(record);
    interruption_ = agreed(world_, interruption_, "interruptions of the sweep");
    shared([&] {
      agree(
          world_,
          [&] {
            if (is_chief()) write_tables();
          },
          "writing the table of the sweep");
    });
  }

  void write_tables() {
    const SweepTable table = sweep_table_of(plan_, records_);
    write_file_atomically(job_.sweep_dir + "/sweep.json", table_json(plan_, table, records_));
    write_file_atomically(job_.sweep_dir + "/sweep.csv", table_csv(table));
    write_file_atomically(job_.sweep_dir + "/report.html",
                          html_of(report::sweep_page(plan_, table, records_)));
    if (table.best)
      write_file_atomically(job_.sweep_dir + "/best.yaml",
                            resolved_config_text(trial_config(plan_, *table.best, shards_)));
  }

  void end() {
    shared([&] {
      agree(
          world_,
          [&] {
            std::error_code code;
            if (!is_chief()) return;
            fs::remove_all(job_.sweep_dir + "/claims", code);
            fs::remove(stop_file(), code);
          },
          "cleaning the folder of the sweep");
    });
  }

  CommEnvironment& environment_;
  Communicator& world_;
  const SweepPlan& plan_;
  const SweepJob& job_;
  std::vector<TrialRecord> records_;
  std::int64_t shards_ = 0;
  int groups_ = 1, color_ = 0;
  std::unique_ptr<CommEnvironment> group_;
  InterruptionRequest interruption_;
};

}  // namespace

int group_of(int rank, int ranks, int groups) {
  return static_cast<int>(static_cast<std::int64_t>(rank) * groups / ranks);
}

SweepOutcome run_sweep(CommEnvironment& environment, const SweepPlan& plan, const SweepJob& job) {
  return SweepRun(environment, plan, job).run();
}

}  // namespace lockstep
