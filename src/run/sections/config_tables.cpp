// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/sections/config_tables.h"

#include "comm/communication_options.h"
#include "config/option.h"
#include "core/error.h"
#include "optim/clip_rule.h"
#include "run/sections/config.h"
#include "run/sections/experiment_options.h"
#include "run/sections/sweep_options.h"
#include "session/checkpoint_options.h"
#include "session/summaries/summary_options.h"
#include "session/training_options.h"
#include "session/warm_start.h"
#include "train/evaluation_options.h"
#include "train/gpu_options.h"
#include "train/precision_options.h"
#include "train/server_layout.h"

namespace lockstep {

namespace {

using enum ParamType;

std::uint64_t seed_of(const Params& top, const ParamSpec& option) {
  return static_cast<std::uint64_t>(top.integer(option.name));
}

constexpr ParamSpec kGeneral[] = {
    option_as<seed_of, &GeneralOptions::seed>(
        integer, "seed", "0", between(0, 9223372036854775807),
        "Seed of all randomness: initial values, order of samples, dropout, noise.", Change::fixed),
    option<&GeneralOptions::shards>(
        "shards", "null", between(1, 65536).or_null(),
        "Microshards per global batch, fixed for the life of a run: the largest number of ranks x threads "
        "that can compute at once. null: 8, or the next power of two that is not below the ranks of the "
        "first launch; on GPUs these ranks; never more than a round of the batch has samples.",
        Change::fixed),
    option<&GeneralOptions::threads>("threads", "null", between(1, 65536).or_null(),
                                     "Compute threads per rank. null: the cores that the rank may use, "
                                     "divided evenly among the ranks of a node.",
                                     Change::free),
    option<&GeneralOptions::device>(
        "device", "cpu", one_of("cpu|cuda"),
        "What ranks compute on. cuda: one GPU per rank, chosen by the rank's number on its host. A run has "
        "the same bits on any number of ranks of one kind of device."),
    option<&BaseDirectory::path>("base_directory", "null", or_null(),
                                 "Folder where relative paths in this file begin. null: the folder of this "
                                 "file. A run directory's config.yaml sets it.",
                                 Change::free),
    {"include", strings, "null", in_words("files, or null"),
     "Configurations that this file begins with: later ones, and this file itself, replace their values. "
     "Paths begin in the folder of this file. See docs/config_files.md.",
     Change::free},
    {"data", node, kRequired, {}, "What to read, and how: see the readers."},
    {"model", node, kRequired, {}, "What to learn: see the layers."},
    {"optimizer", node, kRequired, {}, "How variables are updated: see the optimizers."},
    {"average",
     node,
     "null",
     {},
     "Moving average of the variables, kept beside them for evaluation and prediction: see the averages. "
     "null: none."},
    {"train", node, "null", {}, "The training loop."},
    {"gradients", node, "null", {}, "Clipping of gradients, and their norm."},
    {"eval", node, "null", {}, "Evaluation during and after training."},
    {"checkpoint", node, "null", {}, "Checkpoints."},
    {"warm_start", node, "null", {}, "Initial values from another run."},
    {"summary", node, "null", {}, "Event files and metrics.jsonl."},
    {"experiment", node, "null", {}, "How `lockstep experiment` trains and evaluates."},
    {"sweep", node, "null", {}, "Which settings `lockstep sweep` tries.", Change::free},
    {"comm", node, "null", {}, "Communication between ranks."},
    {"cluster", node, "null", {}, "Parameter servers: ranks that hold the variables for the others."},
    {"precision", node, "null", {}, "Number types."},
    {"gpu", node, "null", {}, "How a rank uses its GPU and the libraries there."},
    {"hooks", node, "null", {}, "Hooks that run beside training: a list, see the hooks."},
    option<&Plugins::paths>(
        "plugins", "null", or_null(),
        "Shared objects with your own layers, losses, readers and hooks, loaded at the start."),
};

}  // namespace

std::span<const ConfigSection> config_sections() {
  static const ConfigSection kSections[] = {
      {"", "Keys at the top level.", kGeneral},
      {"train", "The training loop.", training_table()},
      {"gradients", "Clipping of gradients, and their norm.", clip_table()},
      {"eval", "Evaluation: exact metrics over the whole evaluation set.", evaluation_table()},
      {"checkpoint", "Checkpoints, written by the chief.", checkpoint_table()},
      {"warm_start",
       "Initial values from the checkpoint of another run: variables, never an optimizer's slots.",
       warm_start_table()},
      {"summary", "What is recorded during training.", summary_table()},
      {"experiment",
       "How `lockstep experiment` lets trainings and evaluations follow each other; other commands ignore "
       "it. See docs/estimator.md.",
       experiment_table()},
      {"sweep",
       "Which settings `lockstep sweep` tries, and by what it compares them; other commands ignore it. See "
       "docs/sweeps.md.",
       sweep_table()},
      {"comm", "Communication between ranks.", communication_table()},
      {"cluster", "Parameter servers: ranks that hold the variables for the others (docs/cluster.md).",
       cluster_table()},
      {"precision", "Types of numbers.", precision_table()},
      {"gpu", "How a rank uses its GPU and the libraries there; the CPU ignores it (docs/gpu.md).",
       gpu_table()},
  };
  return kSections;
}

const ConfigSection& config_section(std::string_view name) {
  for (const ConfigSection& section : config_sections())
    if (section.name == name) return section;
  LOCKSTEP_CHECK(false, "no section '{}'", name);
  return config_sections().front();
}

}  // namespace lockstep
