// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A program of somebody else, which has initialised MPI and trains on a part of its ranks (guest_test.py):
//
//   guest_program LEVEL STORY [TIMES]
//
// It has handlers of its own for errors of MPI_COMM_WORLD and for signals, and messages on their way while
// Lockstep works. Each story ends with "ok", or with what is wrong.
#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>

#include "comm/mpi_group.h"
#include "comm/shared_error.h"
#include "guest_settings.h"
#include "io/checkpoint.h"
#include "session/hook.h"
#include "session/hook_context.h"
#include "session/run_state.h"
#include "support/estimator_run.h"

namespace lockstep {

namespace {

/// Tasks of this process.
int threads_of_process() {
  int count = 0;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

std::int64_t memory_kilobytes() {
  std::int64_t size = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r"); file != nullptr) {
    if (std::fscanf(file, "%ld %ld", &size, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * ::sysconf(_SC_PAGESIZE) / 1024;
}

/// Messages of the program that are on their way for the whole time, on MPI_COMM_WORLD, with a tag that
/// Lockstep uses, too.
class Traffic {
 public:
  Traffic() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Irecv(&received_, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &request_);
    mine_ = rank_ == 0 ? 1 : 0;
    MPI_Iallreduce(&mine_, &sum_, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &all_);
  }
  void end() {
    const int to = (rank_ + 1) % size_, from = (rank_ + size_ - 1) % size_;
    MPI_Send(&rank_, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
    MPI_Wait(&request_, MPI_STATUS_IGNORE);
    MPI_Wait(&all_, MPI_STATUS_IGNORE);
    require(received_ == from && sum_ == 1, "a message of the program was lost");
  }

 private:
  int rank_ = 0, size_ = 0, received_ = -1, mine_ = 0, sum_ = 0;
  MPI_Request request_ = MPI_REQUEST_NULL, all_ = MPI_REQUEST_NULL;
};

std::string run_dir(const char* name) { return fmt::format("guest_{}", name); }

RunConfig quiet_run(const std::string& dir) {
  RunConfig run = small_run(dir);
  run.checkpoint.every_epochs = 1;
  return run;
}

class CountThreads final : public Hook {
 public:
  explicit CountThreads(int most) : Hook("count threads", HookScope::all_ranks), most_(most) {}
  void after_run(HookContext&, const StepResult&) override {
    if (threads_of_process() > most_)
      throw std::runtime_error(fmt::format("{} threads, {} before", threads_of_process(), most_));
  }

 private:
  int most_;
};

class RaiseInterrupt final : public Hook {
 public:
  explicit RaiseInterrupt(bool here) : Hook("raise", HookScope::all_ranks), here_(here) {}
  void after_run(HookContext&, const StepResult& result) override {
    if (here_ && result.step == 3) std::raise(SIGINT);
  }

 private:
  bool here_;
};

/// Trains twice and predicts on the ranks of `part`, each time with an environment of its own.
void train_and_predict(MPI_Comm part, bool single) {
  const int threads = threads_of_process();
  std::string digests;
  for (int time = 0; time < 2; ++time) {
    CommEnvironment ranks(part, {.log_level = LogLevel::warning});
    RunConfig run = quiet_run(run_dir("train"));
    Estimator estimator(ranks, small_model, run);
    TrainOptions options{.steps = 6};
    if (single) options.hooks = {[=] { return std::make_unique<CountThreads>(threads); }};
    require(estimator.train(class_input(), options).exit_code == 0, "the training did not end");
    const auto predictions = estimator.predict(class_input("other", 20));
    int batches = 0;
    while (predictions->next()) ++batches;
    require(batches > 0, "no predictions");
    digests += " " + find_checkpoint(ranks.world(), run.model_dir, "").header.digest;
    require(ranks.is_guest() && !single == ranks.may_use_threads(), "the kind of the environment");
    if (ranks.world().rank() == 0 && time == 1) std::printf("digests%s\n", digests.c_str());
  }
}

struct HostError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// All ranks must throw; the rank that failed has the program's exception inside.
template <typename Body>
void require_error_on_all(MPI_Comm part, bool mine, const std::string& text, Body body) {
  bool inside = false;
  std::string message;
  try {
    body();
  } catch (const Error& error) {
    message = error.what();
    try {
      std::rethrow_if_nested(error);
    } catch (const HostError&) {
      inside = true;
    } catch (...) {
    }
  }
  require(message.find(text) != std::string::npos, fmt::format("the error '{}' is not '{}'", message, text));
  require(inside == mine,
          fmt::format("the program's exception is {}inside '{}'", inside ? "" : "not ", message));
  MPI_Barrier(part);
}

class ThrowAtStep final : public Hook {
 public:
  explicit ThrowAtStep(bool here) : Hook("throws", HookScope::all_ranks), here_(here) {}
  void after_run(HookContext&, const StepResult& result) override {
    if (here_ && result.step == 3) throw HostError("the hook of the program");
  }

 private:
  bool here_;
};

void errors(MPI_Comm part) {
  int rank = 0, size = 0;
  MPI_Comm_rank(part, &rank);
  MPI_Comm_size(part, &size);
  const bool mine = rank == size - 1;
  const auto failing = [=](std::int64_t bad) {
    return [=] {
      return Input::computed("computed",
                             {.size = 64,
                              .shape = Shape{6},
                              .has_classes = true,
                              .fill = [=](std::int64_t sample, float* features, std::int32_t* label, float*) {
                                if (sample >= bad && mine) throw HostError("no such sample here");
                                std::fill_n(features, 6, static_cast<float>(sample));
                                if (label != nullptr) *label = static_cast<std::int32_t>(sample % 3);
                              }});
    };
  };
  CommEnvironment ranks(part, {.log_level = LogLevel::error});
  require_error_on_all(part, mine, "no such sample here", [&] {
    Estimator estimator(ranks, small_model, quiet_run(run_dir("fill")));
    estimator.train(failing(0), {.steps = 20});
  });
  require_error_on_all(part, mine, "the hook of the program", [&] {
    Estimator estimator(ranks, small_model, quiet_run(run_dir("hook")));
    estimator.train(class_input(),
                    {.steps = 20, .hooks = {[=] { return std::make_unique<ThrowAtStep>(mine); }}});
  });
  require_error_on_all(part, mine, "the model of the program", [&] {
    Estimator estimator(
        ranks,
        [=](const Features& features, const LabelColumns& labels, Mode mode, const Params& params) {
          if (mine) throw HostError("the model of the program");
          return small_model(features, labels, mode, params);
        },
        quiet_run(run_dir("model")));
    estimator.train(class_input(), {.steps = 20});
  });
  // The process goes on.
  Estimator estimator(ranks, small_model, quiet_run(run_dir("after")));
  require(estimator.train(class_input(), {.steps = 4}).global_step == 4, "no training after errors");
  require_error_on_all(part, mine, "no such sample here", [&] {
    Estimator other(ranks, small_model, quiet_run(run_dir("after")));
    other.evaluate(failing(40));
  });
  require_error_on_all(part, mine, "no such sample here", [&] {
    Estimator other(ranks, small_model, quiet_run(run_dir("after")));
    const auto rows = other.predict(failing(40));
    while (rows->next()) {
    }
  });
}

void interrupt(MPI_Comm part) {
  int rank = 0;
  MPI_Comm_rank(part, &rank);
  CommEnvironment ranks(part, {.log_level = LogLevel::warning});
  Estimator estimator(ranks, small_model, quiet_run(run_dir("interrupt")));
  const auto hook = [=] { return std::make_unique<RaiseInterrupt>(rank == 0); };
  const TrainingOutcome outcome = estimator.train(class_input(), {.steps = 20, .hooks = {hook}});
  require(outcome.exit_code == 130 && outcome.global_step < 6, "the signal did not end the training");
  require(signals_of_program == (rank == 0 ? 1 : 0), "the program's handler was not called");
  require(estimator.train(class_input(), {.max_steps = 8}).global_step == 8,
          "the earlier signal ended the next training");
}

/// Memory and communicators do not grow in the second half.
void many(MPI_Comm part, int times) {
  std::int64_t memory = 0;
  int communicators = 0;
  for (int time = 0; time < times; ++time) {
    CommEnvironment ranks(part, {.log_level = LogLevel::warning});
    RunConfig run = small_run(run_dir("many"));
    Estimator estimator(ranks, small_model, run);
    estimator.train(class_input(), {.steps = 1});
    for (int again = 0; again < 4; ++again) {
      const auto rows = estimator.predict(class_input("other", 20));
      while (rows->next()) {
      }
    }
    if (time == times / 2) {
      memory = memory_kilobytes();
      communicators = MpiGroup::count();
    }
  }
  require(MpiGroup::count() == communicators,
          fmt::format("{} communicators, {} before", MpiGroup::count(), communicators));
  const std::int64_t grown = memory_kilobytes() - memory;
  require(grown < 2000, fmt::format("{} kB more after {} trainings", grown, times - times / 2));
}

/// The same of predictions of one estimator.
void predict_often(MPI_Comm part, int times) {
  CommEnvironment ranks(part, {.log_level = LogLevel::warning});
  Estimator estimator(ranks, small_model, small_run(run_dir("predict")));
  estimator.train(class_input(), {.steps = 1});
  std::int64_t memory = 0;
  int communicators = 0;
  for (int time = 0; time < times; ++time) {
    const auto rows = estimator.predict(class_input("other", 20));
    while (rows->next()) {
    }
    if (time != times / 2) continue;
    memory = memory_kilobytes();
    communicators = MpiGroup::count();
  }
  require(MpiGroup::count() == communicators, "a prediction has left communicators");
  const std::int64_t grown = memory_kilobytes() - memory;
  require(grown < 2000, fmt::format("{} kB more after {} predictions", grown, times - times / 2));
}

/// A rank that stays away: the program decides what becomes of it.
void last_resort(MPI_Comm part) {
  int rank = 0;
  MPI_Comm_rank(part, &rank);
  const auto decide = [](int code, const std::string& message) {
    std::printf("the program decides: code %d, %s\n", code, message.c_str());
    std::fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 42);
  };
  CommEnvironment ranks(part, {.timeout_seconds = 2, .log_level = LogLevel::warning, .last_resort = decide});
  if (rank == 1) std::this_thread::sleep_for(std::chrono::seconds(60));
  ranks.world().barrier("a call that rank 1 does not make");
}

int run(int level, const std::string& story, int times) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  Settings settings;
  Traffic traffic;
  // The last rank simulates, and has no part in the training.
  MPI_Comm part = MPI_COMM_NULL;
  const bool trains = size == 1 || rank < size - 1;
  MPI_Comm_split(MPI_COMM_WORLD, trains ? 1 : MPI_UNDEFINED, rank, &part);
  if (trains) {
    if (story == "train") train_and_predict(part, level == MPI_THREAD_SINGLE);
    if (story == "errors") errors(part);
    if (story == "interrupt") interrupt(part);
    if (story == "many") many(part, times);
    if (story == "predict") predict_often(part, times);
    if (story == "last_resort") last_resort(part);
    MPI_Comm_free(&part);
  }
  settings.check();
  traffic.end();
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  require(initialized != 0 && finalized == 0, "MPI was finalized");
  if (rank == 0) std::printf("ok\n");
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "", story = argc > 2 ? argv[2] : "";
  const int wanted = name == "single"       ? MPI_THREAD_SINGLE
                     : name == "funneled"   ? MPI_THREAD_FUNNELED
                     : name == "serialized" ? MPI_THREAD_SERIALIZED
                                            : MPI_THREAD_MULTIPLE;
  int level = 0;
  MPI_Init_thread(&argc, &argv, wanted, &level);
  int code = 1;
  try {
    code = lockstep::run(level, story, argc > 3 ? std::atoi(argv[3]) : 30);
  } catch (const std::exception& error) {
    lockstep::wrong(error.what());
  }
  MPI_Finalize();
  return code;
}
