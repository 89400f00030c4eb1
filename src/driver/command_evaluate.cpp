// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/command_evaluate.h"

#include "comm/agree.h"
#include "driver/evaluation.h"
#include "driver/hang_rank.h"
#include "driver/launch.h"
#include "driver/run_directory.h"
#include "driver/run_vocabulary.h"
#include "driver/session.h"

namespace lockstep {

namespace {
std::string parts_text(const Model& model, const Evaluation& evaluation, const EvaluationResult& result) {
  std::string text;
  for (std::size_t i = 0; i < result.parts.size(); ++i)
    if (model.reports(evaluation.part_names()[i]))
      text += fmt::format(", \"{}\": {}", evaluation.part_names()[i], result.parts[i]);
  return text;
}
}  // namespace

int command_evaluate(const CommandLine& line) {
  const RunTarget target = resolve_target(line);
  const std::optional<double> timeout = hang_timeout_seconds(line, comm_timeout_seconds(target.config));
  return run_on_ranks(timeout, line.quiet, [&](CommEnvironment& environment) {
    Communicator& world = environment.world();
    shared([&] { hang_rank(line, world); });
    const FoundCheckpoint found = shared([&] {
      FoundCheckpoint checkpoint = find_checkpoint(world, target.run_dir, line.checkpoint);
      if (!checkpoint.exists())
        throw Error(ErrorKind::checkpoint, "there is no checkpoint to evaluate", target.run_dir,
                    "Train first, or name one with --checkpoint.");
      return checkpoint;
    });
    Session session(environment, target.config, found.header.shards, false, true);
    shared([&] {
      agree(
          world,
          [&] {
            if (world.rank() == 0) check_vocabulary(target.run_dir, *session.eval_data());
          },
          "comparing the vocabulary");
    });
    shared([&] { restore_state(world, found, *session.model().variables, nullptr); });
    const Params& eval = session.config().eval;
    Evaluation evaluation(
        session.executor_context(), session.control(), *session.eval_data(),
        eval.has("batch_size") ? eval.integer("batch_size") : session.config().train.integer("batch_size"));
    session.workers().grow_scratch(evaluation.scratch_bytes());
    const EvaluationResult result = evaluation.run();
    if (session.is_chief())
      fmt::print("{{\"checkpoint\": \"{}\", \"global_step\": {}, \"samples\": {}, \"loss\": {}{}{}}}\n",
                 found.path, found.header.global_step, result.samples, result.loss,
                 session.model().accuracy() ? fmt::format(", \"accuracy\": {}", result.accuracy) : "",
                 parts_text(session.model(), evaluation, result));
    return 0;
  });
}

}  // namespace lockstep
