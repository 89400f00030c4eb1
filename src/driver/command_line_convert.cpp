// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The command `lockstep convert` with its options.
#include <algorithm>

#include "driver/command_line_checks.h"
#include "driver/command_line_options.h"
#include "driver/command_line_parts.h"

namespace lockstep {

namespace {

constexpr std::int64_t kMostShards = 99999, kMostSamples = 1'000'000'000'000;

ValueCheck one_of(std::string what, std::vector<std::string> names) {
  return must_be(std::move(what), [names = std::move(names)](const std::string& text) {
    return std::find(names.begin(), names.end(), text) != names.end();
  });
}

}  // namespace

void CommandLineParser::add_convert() {
  CLI::App* command =
      add(app_, "convert",
          "Write a data set to files of another format, for training, and compare what was written",
          "lockstep convert flowers.yaml flowers.h5\n"
          "  mpirun -n 4 lockstep convert volumes.yaml train.h5 --shards 64 --gzip 1",
          [this] {
            ConvertArguments arguments = convert_;
            arguments.overrides = overrides();
            return arguments;
          });
  add_target(command, "CONFIG", convert_.config,
             "Configuration file (YAML), of which only the section data is needed");
  add_target(
      command, "OUTPUT", convert_.output,
      "The file to write: .h5, .hdf5, .npy, .npz, .tfrecord, .csv or .tsv; with --to png or jpeg a folder");
  command->add_option("--part", convert_.part, "The set to convert; default: train")
      ->type_name("train|eval")
      ->check(one_of("one of train, eval", {"train", "eval"}));
  command
      ->add_option("--input", convert_.input, "Of samples with several inputs or targets: the one to convert")
      ->type_name("NAME")
      ->check(not_empty("a name"));
  command->add_option("--to", convert_.to, "The format; default: by the ending of OUTPUT")
      ->type_name("hdf5|npy|npz|tfrecord|csv|png|jpeg")
      ->check(one_of("one of hdf5, npy, npz, tfrecord, csv, png, jpeg",
                     {"hdf5", "npy", "npz", "tfrecord", "csv", "png", "jpeg"}));
  command
      ->add_option("--shards", convert_.shards,
                   "Write N files, out-00000-of-0000N.h5 and so on, which ranks share; default: 1")
      ->type_name("N")
      ->check(whole_number(1, kMostShards));
  command->add_option("--chunk", convert_.chunk, "hdf5: samples of a chunk; default: about 256 KiB")
      ->type_name("N")
      ->check(whole_number(1, kMostSamples));
  command->add_option("--gzip", convert_.gzip, "hdf5, tfrecord: compress with this level; hdf5 also shuffles")
      ->type_name("LEVEL")
      ->check(whole_number(1, 9));
  command->add_option("--quality", convert_.quality, "jpeg: from 1 to 100; default: 95")
      ->type_name("N")
      ->check(whole_number(1, 100));
  command->add_flag("--fletcher32", convert_.fletcher32, "hdf5: store a checksum with each chunk");
  command
      ->add_option("--features", convert_.features,
                   "Name of the features in hdf5, npz and tfrecord files; default: features")
      ->type_name("NAME")
      ->check(not_empty("a name"));
  command->add_option("--labels", convert_.labels, "Name of the labels; default: labels")
      ->type_name("NAME")
      ->check(not_empty("a name"));
  command->add_flag("--transforms", convert_.transforms,
                    "Write float32 after scale, offset, mean, std, normalize, whiten and transforms, random "
                    "ones in their fixed "
                    "form; without it samples are written as they are stored");
  command->add_flag_callback(
      "--no-verify", [this] { convert_.verify = false; }, "Do not read back what was written");
  command->add_flag("--force", convert_.force,
                    "Replace files that exist, and begin anew after an interruption");
  add_overrides(command);
  add_quiet(command, convert_.quiet);
}

}  // namespace lockstep
