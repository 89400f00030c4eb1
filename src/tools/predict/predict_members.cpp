// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/predict/predict_members.h"

#include <cmath>

#include "comm/shared_error.h"
#include "session/checkpoint_choice.h"

namespace lockstep {

namespace {

double sigmoid(double logit) { return 1 / (1 + std::exp(-logit)); }

}  // namespace

std::vector<MemberTarget> member_targets(const RunArguments& run,
                                         const std::vector<std::string>& more_targets,
                                         const std::vector<std::string>& more_checkpoints) {
  const bool is_word = is_checkpoint_word(run.checkpoint);
  if (!more_targets.empty() && !run.checkpoint.empty() && (!is_word || !more_checkpoints.empty()))
    throw Error(
        ErrorKind::usage, "several runs are given, and --checkpoint as well", run.checkpoint,
        "Name one run with several checkpoints, or several runs with --checkpoint best, last or a step.");
  std::vector<MemberTarget> members{{resolve_target(run), run.checkpoint}};
  if (members.front().checkpoint.empty()) members.front().checkpoint = members.front().target.checkpoint;
  for (const std::string& more : more_targets) {
    RunArguments other = run;
    other.target = more;
    RunTarget target = resolve_target(other);
    const std::string checkpoint = run.checkpoint.empty() ? target.checkpoint : run.checkpoint;
    members.push_back({std::move(target), checkpoint});
  }
  for (const std::string& checkpoint : more_checkpoints)
    members.push_back({members.front().target, checkpoint});
  return members;
}

Member open_member(CommEnvironment& environment, const MemberTarget& target, RunNeeds needs, bool averages,
                   bool described) {
  Communicator& world = environment.world();
  const std::string& run_dir = target.target.run_dir;
  Member member;
  member.found = shared([&] {
    FoundCheckpoint checkpoint = open_checkpoint(world, run_dir, target.checkpoint);
    if (!checkpoint.exists())
      throw Error(ErrorKind::checkpoint, "there is no checkpoint to predict with", run_dir,
                  "Train first, or name one with --checkpoint.");
    return checkpoint;
  });
  needs.kept_in = run_dir;
  needs.kept = member.found.header.kept;
  needs.described = described;
  member.context =
      std::make_unique<RunContext>(environment, target.target.config, member.found.header.shards, needs);
  member.averaged_variables = shared(
      [&] { return restore_variables(world, member.found, *member.context->model().variables, averages); });
  return member;
}

void check_same_heads(const std::vector<Member>& members, const std::vector<MemberTarget>& targets) {
  const Heads& first = *members.front().context->model().heads;
  for (std::size_t m = 1; m < members.size(); ++m) {
    const Heads& other = *members[m].context->model().heads;
    bool same = other.size() == first.size();
    for (int head = 0; same && head < first.size(); ++head)
      same = other[head].name == first[head].name && other[head].shape == first[head].shape &&
             other[head].loss->predictions() == first[head].loss->predictions();
    if (!same)
      throw Error(
          ErrorKind::config,
          fmt::format("the model predicts other things than that of {}", targets.front().target.run_dir),
          targets[m].target.run_dir,
          "Members of an ensemble have heads of the same names, shapes and kinds of loss.");
  }
}

void average_rows(PredictionKind kind, std::span<const std::span<const float>> rows,
                  std::vector<float>& out) {
  const auto members = static_cast<double>(rows.size());
  out.resize(rows.front().size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    double sum = 0, rest = 0;
    for (const std::span<const float> member : rows) {
      if (kind != PredictionKind::labels) {
        sum += member[i];
      } else {  // both sides of 1, because 1 - p has few digits near 1
        sum += sigmoid(member[i]);
        rest += sigmoid(-static_cast<double>(member[i]));
      }
    }
    out[i] =
        static_cast<float>(kind == PredictionKind::labels ? std::log(sum) - std::log(rest) : sum / members);
  }
}

void spread_of_rows(PredictionKind kind, std::span<const std::span<const float>> rows,
                    std::vector<float>& out) {
  const auto members = static_cast<double>(rows.size());
  out.resize(rows.front().size());
  const auto number_of = [&](float value) {
    return kind == PredictionKind::labels ? sigmoid(static_cast<double>(value)) : static_cast<double>(value);
  };
  for (std::size_t i = 0; i < out.size(); ++i) {
    double mean = 0, squares = 0;
    for (const std::span<const float> member : rows) mean += number_of(member[i]);
    mean /= members;
    for (const std::span<const float> member : rows) {
      const double difference = number_of(member[i]) - mean;
      squares += difference * difference;
    }
    out[i] = static_cast<float>(std::sqrt(squares / (members - 1)));
  }
}

}  // namespace lockstep
