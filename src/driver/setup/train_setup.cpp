// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/setup/train_setup.h"

#include "core/log.h"
#include "driver/setup/loss_scale.h"

namespace lockstep {

StepPlanSpec step_plan_spec(const RunContext& session) {
  const Config& config = session.config();
  return {.num_samples = session.train_data().size(),
          .batch_size = config.train.integer("batch_size"),
          .shards = session.shards(),
          .seed = session.seed(),
          .shuffle = config.train.boolean("shuffle"),
          .drop_remainder = config.train.boolean("drop_remainder")};
}

TrainerOptions trainer_options(RunContext& session) {
  TrainerOptions options;
  options.regularization = session.model().regularization;
  options.clip = clip_rule(session.config());
  options.scales_loss = loss_scale(session.config()).used();
  const Params& comm = session.config().comm;
  options.reducer.mode = comm.string("reduction") == "fast" ? GradientReducerOptions::Mode::fast
                                                            : GradientReducerOptions::Mode::tree;
  const int ranks = session.world().size(), threads = session.workers().pool().size();
  const std::string& overlap = comm.string("overlap");
  const bool has_core = session.device().is_gpu() || session.cores_per_rank() > threads;
  const bool wanted = overlap == "on" || (overlap == "auto" && has_core);
  options.reducer.overlap = wanted && ranks > 1 && session.may_overlap();
  if (overlap == "on" && ranks > 1 && !session.may_overlap())
    log_warning(
        "comm.overlap is on, but this MPI library does not allow a communication thread "
        "(MPI_THREAD_MULTIPLE)");
  options.reducer.direct = session.direct_gradients();
  options.bucket_first_bytes = static_cast<std::int64_t>(comm.real("bucket_first_mb") * (1 << 20));
  options.bucket_bytes = static_cast<std::int64_t>(comm.real("bucket_mb") * (1 << 20));
  return options;
}

}  // namespace lockstep
