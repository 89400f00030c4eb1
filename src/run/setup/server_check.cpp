// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/server_check.h"

#include <algorithm>

#include "optim/optimizer.h"

namespace lockstep {

namespace {

constexpr const char* kWithout =
    "Leave out section cluster (cluster.ps=0): every rank then holds all variables.";

/// An option of a section, its hook or its part that counts steps.
void check_interval(const Params& options, const char* name, const std::string& owner, std::int64_t meeting) {
  const std::optional<std::int64_t> steps = options.optional_integer(name);
  if (!steps || *steps <= 0 || *steps % meeting == 0) return;
  throw options.error(name,
                      fmt::format("{}.{} is {}, but with cluster.ps all ranks meet every {} steps", owner,
                                  name, *steps, meeting),
                      fmt::format("Make it a multiple of {}, or change cluster.meet_every_steps.", meeting));
}

/// Between two meetings nothing sees a step.
void check_meetings(const Config& config) {
  const std::int64_t meeting = config.cluster.meeting();
  const auto section = [&](const char* name, std::initializer_list<const char*> options) {
    for (const char* const option : options) check_interval(config.section(name), option, name, meeting);
  };
  section("summary", {"every_steps", "counter_every_steps"});
  section("eval", {"every_steps"});
  section("checkpoint", {"every_steps"});
  section("comm", {"check_every_steps"});
  const auto any = [&](const Params& options, std::span<const ParamSpec> table, const std::string& owner) {
    for (const ParamSpec& spec : table)
      if (spec.name == "every_steps") check_interval(options, "every_steps", owner, meeting);
  };
  for (const SummarySpec& part : config.summary.parts)
    any(part.options, part.part.table, fmt::format("summary.{}", part.part.name));
  for (const HookSpec& hook : config.hooks)
    any(hook.options, hook.entry.table, fmt::format("hook {}", hook.entry.name));
  constexpr const char* kMeet = "Set cluster.meet_every_steps=1, without staleness.";
  if (config.average)
    throw config.error("", "average",
                       "the moving average of variables on servers is not kept between meetings", kMeet);
  if (config.gradients.measures())
    throw config.section("cluster").error(
        "ps", "between meetings no rank has all gradients, which section gradients or train.on_nan measures",
        kMeet);
  for (const HookSpec& hook : config.hooks)
    if (hook.entry.name == "profile")
      throw Error(ErrorKind::config, "the hook profile begins at a step, and ranks meet at some steps only",
                  hook.where, kMeet);
  for (const SummarySpec& part : config.summary.parts)
    if (part.part.name == "updates")
      throw config.error("summary", "updates", "sees single steps, and ranks meet at some steps only", kMeet);
}

}  // namespace

void check_servers(const Config& config, const Model& model, const Optimizer& optimizer, bool on_gpu,
                   bool records) {
  if (!config.cluster.used()) return;
  const auto refuse = [&](const std::string& why, const char* advice = kWithout) {
    throw config.section("cluster").error("ps", why, advice);
  };
  if (on_gpu) refuse("variables on a GPU are not distributed over servers");
  if (config.optimizer.shard)
    refuse("optimizer.shard distributes the update over all ranks",
           "Use one of cluster.ps and optimizer.shard.");
  if (config.comm.fast_reduction)
    refuse("servers add gradients along the tree, and comm.reduction is fast", "Set comm.reduction=tree.");
  if (config.comm.compress) refuse("gradients for servers are not compressed", "Set comm.compress=none.");
  if (!optimizer.updates_parts() || optimizer.measures())
    refuse(fmt::format("{} needs whole variables on each rank", optimizer.subject()),
           "Use a rule that updates each element alone, or leave out section cluster.");
  if (config.precision.loss_scale.used()) refuse("precision.loss_scale looks at all gradients of a step");
  if (config.gradients.noise_scale) refuse("gradients.noise_scale needs the gradients of all microshards");
  if (!model.variables->sparse().empty())
    refuse("a lazy optimizer needs the rows of a table that a step touches",
           "Set lazy=false in the optimizer.");
  if (model.variables->changing_bytes() > 0)
    refuse("batch_norm needs all samples of a batch at the same time", "Use layer_norm or group_norm.");
  if (model.heads->counts_labels())
    refuse("a loss is divided by the number of labels in the whole batch",
           "Use a loss without ignored labels, or leave out section cluster.");
  if (records) refuse("a step cannot be recorded where no rank has all of its gradients");
  for (const SummarySpec& part : config.summary.parts)
    for (const char* const inside : {"inputs", "activations", "attention"})
      if (part.part.name == inside)
        throw config.error("summary", inside,
                           "looks inside a step, whose parts no rank has all of with cluster.ps",
                           "Leave it out, or leave out section cluster.");
  if (config.cluster.meeting() > 1) check_meetings(config);
}

}  // namespace lockstep
