// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep convert`: writes a data set of a configuration to files of another format.
#include <csignal>

#include "api/launch.h"
#include "core/error.h"
#include "core/process_environment.h"
#include "core/run_signals.h"
#include "driver/command_line/command.h"
#include "driver/command_line/common_options.h"
#include "run/setup/data_trial.h"
#include "tools/convert/conversion_job.h"
#include "tools/convert/conversion_plan.h"
#include "tools/convert/source_opening.h"

namespace lockstep {

namespace {

constexpr std::int64_t kMostShards = 99999, kMostSamples = 1'000'000'000'000;

void declare(CommandOptions& options, ConvertArguments& arguments) {
  add_target(options, "CONFIG", arguments.config,
             "Configuration file (YAML), of which only the section data is needed");
  add_target(
      options, "OUTPUT", arguments.output,
      "The file to write: .h5, .hdf5, .npy, .npz, .tfrecord, .csv or .tsv; with --to png or jpeg a folder");
  options.add("--part", arguments.part, "The set to convert; default: train")
      .type_name("train|eval")
      .check(one_of_names({"train", "eval"}));
  options.add("--input", arguments.input, "Of samples with several inputs or targets: the one to convert")
      .type_name("NAME")
      .check(not_empty("a name"));
  options.add("--to", arguments.to, "The format; default: by the ending of OUTPUT")
      .type_name("hdf5|npy|npz|tfrecord|csv|png|jpeg")
      .check(one_of_names({"hdf5", "npy", "npz", "tfrecord", "csv", "png", "jpeg"}));
  options
      .add("--shards", arguments.shards,
           "Write N files, out-00000-of-0000N.h5 and so on, which ranks share; default: 1")
      .type_name("N")
      .check(whole_number(1, kMostShards));
  options.add("--chunk", arguments.chunk, "hdf5: samples of a chunk; default: about 256 KiB")
      .type_name("N")
      .check(whole_number(1, kMostSamples));
  options.add("--gzip", arguments.gzip, "hdf5, tfrecord: compress with this level; hdf5 also shuffles")
      .type_name("LEVEL")
      .check(whole_number(1, 9));
  options.add("--quality", arguments.quality, "jpeg: from 1 to 100; default: 95")
      .type_name("N")
      .check(whole_number(1, 100));
  options.add_flag("--fletcher32", arguments.fletcher32, "hdf5: store a checksum with each chunk");
  options
      .add("--features", arguments.features,
           "Name of the features in hdf5, npz and tfrecord files; default: features")
      .type_name("NAME")
      .check(not_empty("a name"));
  options.add("--labels", arguments.labels, "Name of the labels; default: labels")
      .type_name("NAME")
      .check(not_empty("a name"));
  options.add_flag("--transforms", arguments.transforms,
                   "Write float32 after scale, offset, mean, std, normalize, whiten and transforms, random "
                   "ones in their fixed form; without it samples are written as they are stored");
  options.add_flag_off("--no-verify", arguments.verify, "Do not read back what was written");
  options.add_flag("--force", arguments.force,
                   "Replace files that exist, and begin anew after an interruption");
  add_overrides(options, arguments.overrides);
  add_quiet(options, arguments.quiet);
}

int run(const ConvertArguments& given) {
  ConvertArguments arguments = given;
  while (arguments.output.size() > 1 && arguments.output.ends_with('/')) arguments.output.pop_back();
  install_run_signals(process_environment);
  std::signal(SIGPIPE, SIG_IGN);
  const SampleFormat format = sample_format(arguments.to, arguments.output);
  const bool compresses = format == SampleFormat::hdf5 || format == SampleFormat::tfrecord;
  if (arguments.gzip > 0 && !compresses)
    throw Error(ErrorKind::usage, "convert: --gzip is for hdf5 and tfrecord", "",
                "Leave it out, or choose another format.");
  if ((arguments.fletcher32 || arguments.chunk) && format != SampleFormat::hdf5)
    throw Error(ErrorKind::usage, "convert: --chunk and --fletcher32 are for hdf5", "",
                "Leave them out, or choose another format.");
  if (arguments.quality && format != SampleFormat::jpeg)
    throw Error(ErrorKind::usage, "convert: --quality is for jpeg", "", "Leave it out, or give --to jpeg.");
  if (is_image(format) && arguments.shards > 1)
    throw Error(ErrorKind::usage, "convert: --shards is for files with many samples", "",
                "Leave it out: ranks share a folder of images by themselves.");
  Config config = load_data_config(arguments.config, arguments.overrides);
  choose_input(config, arguments);
  try_data_on_chief(config);
  return run_on_ranks(
      {config.comm.timeout_seconds, config.comm.start_timeout_seconds}, arguments.quiet,
      [&](CommEnvironment& environment) { return convert_data(environment, config, arguments, format); });
}

}  // namespace

extern const Command kConvertCommand = {
    "convert", "Write a data set to files of another format, for training, and compare what was written",
    "lockstep convert flowers.yaml flowers.h5\n"
    "mpirun -n 4 lockstep convert volumes.yaml train.h5 --shards 64 --gzip 1",
    call_with<ConvertArguments, declare, run>};

}  // namespace lockstep
