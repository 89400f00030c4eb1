// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The commands `lockstep export` and `lockstep import` with their options.
#include <algorithm>

#include "driver/command_line_checks.h"
#include "driver/command_line_options.h"
#include "driver/command_line_parts.h"

namespace lockstep {

namespace {

ValueCheck one_of(std::string what, std::vector<std::string> names) {
  return must_be(std::move(what), [names = std::move(names)](const std::string& text) {
    return std::find(names.begin(), names.end(), text) != names.end();
  });
}

void add_layout(CLI::App* command, std::string& layout, const char* help) {
  command->add_option("--layout", layout, help)
      ->type_name("lockstep|pytorch")
      ->check(one_of("one of lockstep, pytorch", {"lockstep", "pytorch"}));
}

}  // namespace

void CommandLineParser::add_export() {
  CLI::App* command =
      add(app_, "export", "Write the net or the variables of a run to a file of another format",
          "lockstep export runs/digits --output digits.safetensors\n"
          "  lockstep export runs/digits --output digits.safetensors --layout pytorch\n"
          "  lockstep export runs/digits --output digits.onnx --fold-batch-norm\n"
          "  lockstep export runs/digits --output digits.weights.h5",
          [this] { return export_run_; });
  add_target(command, "RUN_DIR|FILE", export_run_.target,
             "Run directory or exported folder, for its newest checkpoint, or a checkpoint file");
  add_output(command, export_run_.output);
  command->add_option("--format", export_run_.format, "The format; default: by the ending of the output")
      ->type_name("safetensors|onnx|keras|hdf5")
      ->check(one_of("one of safetensors, onnx, keras, hdf5", {"safetensors", "onnx", "keras", "hdf5"}));
  add_layout(
      command, export_run_.layout,
      "safetensors: names and layouts of the variables; default: lockstep, as the checkpoint has them");
  command->add_flag("--fold-batch-norm", export_run_.fold_batch_norm,
                    "onnx: put batch norms into the kernels of dense layers and convolutions before them");
  add_averages(command, export_run_.averages);
}

void CommandLineParser::add_import() {
  CLI::App* command =
      add(app_, "import", "Write the tensors of a file of another format as weights for a warm start",
          "lockstep import model.safetensors --layout pytorch --like runs/digits --show\n"
          "  lockstep import model.safetensors --layout pytorch --output weights.h5",
          [this] { return import_; });
  add_target(
      command, "FILE", import_.file,
      "A .safetensors file, a state dict of PyTorch (.pt, .pth, .bin), weights of Keras 3 (.weights.h5), "
      "or an ONNX model (.onnx)");
  command->add_option("--output", import_.output, "The file of weights to write (.h5)")
      ->type_name("FILE")
      ->check(not_empty("a path"));
  add_layout(command, import_.layout, "How the file has its tensors; default: lockstep");
  command
      ->add_option("--like", import_.like,
                   "A run directory or checkpoint of the model: names and shapes are compared with it")
      ->type_name("RUN_DIR|FILE")
      ->check(not_empty("a path"));
  command
      ->add_option("--map", import_.map,
                   "A YAML map: {NAME: VARIABLE} for one tensor of the file, {NAME: null} leaves it out; "
                   "{SCOPE/: SCOPE/} and patterns rename by Lockstep's names, as warm_start.rename does")
      ->type_name("FILE")
      ->check(not_empty("a path"));
  command->add_flag("--show", import_.show, "List both sides and propose a mapping; write nothing");
}

}  // namespace lockstep
