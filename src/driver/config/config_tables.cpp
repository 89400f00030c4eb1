// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/config/config_tables.h"

#include "core/error.h"

namespace lockstep {

namespace {

using enum ParamType;

constexpr ParamSpec kGeneral[] = {
    {"seed", integer, "0", ">= 0",
     "Seed of everything random: initial values, order of samples, dropout, augmentation."},
    {"shards", integer, "null", ">= 1 or null",
     "Microshards per global batch, fixed for the life of a run: the most ranks x threads that can compute "
     "at once. "
     "null: the number of cores of the first launch."},
    {"threads", integer, "null", ">= 1 or null",
     "Compute threads per rank. null: the cores that the rank may use, shared fairly among the ranks of a "
     "node."},
    {"device", string, "cpu", "cpu|cuda",
     "What ranks compute on. cuda: one GPU per rank, by the rank's number on its host. The bits of a run are "
     "the same on any number of ranks of one kind of device."},
    {"base_directory", string, "null", "or null",
     "Where relative paths in this file begin. null: the folder of this file. A run directory's config.yaml "
     "has it written."},
    {"data", node, kRequired, "", "What to read, and how: see the readers."},
    {"model", node, kRequired, "", "What to learn: see the layers."},
    {"optimizer", node, kRequired, "", "How variables move: see the optimizers."},
    {"train", node, "null", "", "The training loop."},
    {"gradients", node, "null", "", "Clipping of gradients, and their norm."},
    {"eval", node, "null", "", "Evaluation during and after training."},
    {"checkpoint", node, "null", "", "Checkpoints."},
    {"warm_start", node, "null", "", "Initial values from another run."},
    {"summary", node, "null", "", "Event files and metrics.jsonl."},
    {"comm", node, "null", "", "Communication between ranks."},
    {"precision", node, "null", "", "Types of numbers."},
    {"hooks", node, "null", "", "What else happens while training: a list, see the hooks."},
    {"plugins", strings, "null", "or null",
     "Shared objects with layers, losses, readers and hooks of your own, loaded at start."},
};

constexpr ParamSpec kTrain[] = {
    {"batch_size", integer, kRequired, "> 0 samples", "Samples per global step, over all ranks together."},
    {"epochs", integer, "null", ">= 1 or null",
     "How many passes over the training set. Give either epochs or steps."},
    {"steps", integer, "null", ">= 1 or null", "How many global steps. Give either epochs or steps."},
    {"shuffle", boolean, "true", "",
     "A new order of the samples in each epoch; the order depends on the seed only."},
    {"drop_remainder", boolean, "false", "",
     "Leave out an epoch's last batch if it is smaller than the others."},
    {"on_nan", string, "error", "error|stop|skip|warn",
     "What to do when the loss, or the norm of gradients that are clipped by it, is NaN or infinite. error: "
     "end with exit code 1; the last checkpoint before "
     "it is kept. "
     "stop: end in order. skip: leave out this step's update. warn: say it and go on."},
    {"max_recoveries", integer, "3", ">= 0",
     "How often a session goes back to the last checkpoint after an error that may go away."},
    {"time_limit", string, "null", "duration or null",
     "How long one job may take, from the start of the program: 90s, 45m, 1.5h, 2d, 1:30:00 or 2-00:00:00. "
     "The run stops "
     "and saves in time, and ends with exit code 75. Slurm's limit is known without it where "
     "SLURM_JOB_END_TIME is set; "
     "the earlier one counts."},
    {"time_margin", real, "10", ">= 0 seconds",
     "How much earlier than the end of the job the run stops, beside the time that steps and checkpoints "
     "were seen to "
     "take."},
    {"max_jobs_without_progress", integer, "2", ">= 1",
     "After so many jobs in a row that gained no step, exit code 1 in place of 75: a run that does not get "
     "ahead is not "
     "queued again for ever."},
};

constexpr ParamSpec kGradients[] = {
    {"clip_global_norm", real, "null", "> 0 or null",
     "Limit of the norm of all gradients together: where it is above, all of them are multiplied by limit / "
     "norm."},
    {"clip_norm", real, "null", "> 0 or null", "The same, for each variable's gradient by itself."},
    {"clip_average_norm", real, "null", "> 0 or null",
     "The same, of a variable's norm divided by the number of its elements."},
    {"clip_value", reals, "null", "or null",
     "Limit of each number: c for [-c, c], or [low, high] with low <= 0 <= high. Of this and the other "
     "limits "
     "only one may be given."},
    {"record_norm", boolean, "false", "",
     "Record the norm of all gradients together as gradient_norm, before clipping. Where norms are limited "
     "it "
     "always is."},
};

constexpr ParamSpec kEval[] = {
    {"batch_size", integer, "null", "> 0 samples or null",
     "Samples per step of evaluation. null: train's batch_size."},
    {"every_epochs", integer, "1", ">= 0 or null",
     "Evaluate after so many epochs. 0 or null: only at the end."},
    {"every_steps", integer, "null", ">= 1 or null", "Evaluate after so many steps, too."},
    {"metrics", node, "null", "list or null",
     "What evaluations report beside loss and accuracy: a list of metrics, each a name or {name: options}; "
     "see the "
     "metrics."},
};

constexpr ParamSpec kCheckpoint[] = {
    {"every_steps", integer, "null", ">= 1 or null", "Write a checkpoint after so many steps, too."},
    {"every_epochs", integer, "1", ">= 0 or null",
     "Write a checkpoint after so many epochs. 0 or null: never for this reason. One is always written at "
     "the end."},
    {"every_seconds", real, "null", "> 0 seconds or null", "Write a checkpoint after so much time, too."},
    {"mtbf_hours", real, "null", "> 0 hours or null",
     "Mean time between failures of the machines that the run is on. Writes checkpoints as often as that "
     "makes "
     "worth while (Young's and Daly's rule, from the measured time that training stands still for one), "
     "beside "
     "those of the other options."},
    {"at_start", boolean, "false", "", "Write a checkpoint before the first step, too."},
    {"keep", integer, "5", ">= 0", "How many of the newest checkpoints to keep. 0: all."},
    {"keep_every_hours", real, "null", "> 0 hours or null",
     "Of the checkpoints that would go, keep one in so many hours for good."},
    {"keep_best", integer, "0", ">= 0",
     "How many of the best checkpoints to keep beside the newest. An evaluation that is better than all "
     "before it "
     "is followed by a checkpoint."},
    {"best_metric", string, "loss", "",
     "Of the evaluation: what keep_best compares: loss, accuracy, or a metric of eval.metrics."},
    {"best_mode", string, "min", "min|max",
     "Whether a smaller (min) or a larger (max) best_metric is better."},
    {"background", boolean, "true", "",
     "Write in a thread of its own, so that training waits for a copy in memory only. false: training waits "
     "for "
     "the disk."},
    {"timeout_seconds", real, "3600", "> 0 seconds",
     "The end of the run waits no longer for a checkpoint; then it is an error."},
};

constexpr ParamSpec kWarmStart[] = {
    {"checkpoint", string, "null", "file or run directory, or null",
     "Where initial values come from. null: every variable begins with its own. A run that continues from "
     "its own "
     "checkpoint never looks here."},
    {"variables", strings, "[.*]", "",
     "Regular expressions for whole names of variables of this model: conv1/.* for all of conv1. Others "
     "begin with "
     "their own initial values."},
    {"rename", node, "null", "map or null",
     "What variables of this model are called in the checkpoint: {conv1/kernel: first/kernel} for one, "
     "{head/: "
     "top/} for all below, {/: backbone/} for all, or a regular expression with groups: "
     "{'block([0-9]+)/(.*)': "
     "'stage$1/$2'}."},
    {"strict", boolean, "true", "",
     "It is an error if a variable is not in the checkpoint or has another shape there. false: take what "
     "fits, and "
     "warn."},
};

constexpr ParamSpec kSummary[] = {
    {"every_steps", integer, "10", ">= 1", "Record loss and metrics after so many steps."},
    {"every_seconds", real, "null", "> 0 seconds or null", "Record when so many seconds have passed, too."},
    {"counter_every_steps", integer, "100", ">= 1",
     "Record global_step/sec and samples/sec after so many steps."},
    {"events", boolean, "true", "", "Write event files for TensorBoard."},
    {"metrics", boolean, "true", "", "Write metrics.jsonl."},
};

constexpr ParamSpec kComm[] = {
    {"reduction", string, "tree", "tree|fast",
     "tree: the same bits on any number of ranks. fast: the MPI library's own sum, whose bits may depend on "
     "it."},
    {"overlap", string, "auto", "auto|on|off",
     "Sum gradients while others are still being computed, in a thread of its own. auto: if the rank has a "
     "core to spare, or a GPU."},
    {"bucket_first_mb", real, "1.0", "> 0 MB",
     "Size of the first gradient bucket: small, so that communication starts early."},
    {"bucket_mb", real, "25.0", "> 0 MB", "Size of the other gradient buckets."},
    {"sparse_below", real, "0.5", "[0, 1]",
     "The gradient of a table (embedding) stays rows and values if a step can touch at most this share of "
     "its "
     "rows. The results are the same either way."},
    {"timeout_seconds", real, "null", ">= 0 seconds or null",
     "A wait for other ranks that takes longer ends the run with a message; ten times as long while one of "
     "them evaluates, saves or reads. null: the larger of 60 s and five times the slowest of the first ten "
     "steps, and 300 s until they are done. 0: wait for ever."},
    {"straggler_factor", real, "1.2", "> 1 or null",
     "Name a rank whose own work takes more than so many times the median of all ranks, in three windows of "
     "100 steps on "
     "end. null: never."},
    {"check_every_steps", integer, "100", ">= 0",
     "Compare a hash of the variables of all ranks after so many steps. 0: never."},
};

constexpr ParamSpec kPrecision[] = {
    {"compute", string, "float32", "float32|bfloat16|float16",
     "Type in which activations and their gradients are held; variables, their gradients, statistics and "
     "losses "
     "are float32 always."},
    {"loss_scale", node, "auto", "auto|dynamic|a power of two",
     "What the loss is multiplied by before the backward pass, and the summed gradients are divided by after "
     "it. auto: dynamic for float16, else 1. dynamic: from 65536 on, halved where gradients overflow (that "
     "step's update is left out), doubled after loss_scale_growth_steps steps without."},
    {"loss_scale_growth_steps", integer, "2000", ">= 1", "See loss_scale."},
    {"allow_tf32", boolean, "false", "",
     "On a GPU: matrix products and convolutions may round their factors to 10 bits of mantissa (TF32), for "
     "speed."},
};

constexpr ConfigSection kSections[] = {
    {"", "Keys at the top level.", kGeneral},
    {"train", "The training loop.", kTrain},
    {"gradients", "Clipping of gradients, and their norm.", kGradients},
    {"eval", "Evaluation: exact metrics over the whole evaluation set.", kEval},
    {"checkpoint", "Checkpoints, written by the chief.", kCheckpoint},
    {"warm_start",
     "Initial values from the checkpoint of another run: variables, never an optimizer's slots.", kWarmStart},
    {"summary", "What is recorded during training.", kSummary},
    {"comm", "Communication between ranks.", kComm},
    {"precision", "Types of numbers.", kPrecision},
};

}  // namespace

std::span<const ConfigSection> config_sections() { return kSections; }

const ConfigSection& config_section(std::string_view name) {
  for (const ConfigSection& section : kSections)
    if (section.name == name) return section;
  LOCKSTEP_CHECK(false, "no section '{}'", name);
  return kSections[0];
}

}  // namespace lockstep
