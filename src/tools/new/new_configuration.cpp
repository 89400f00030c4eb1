// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/new/new_configuration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/shown_text.h"

namespace lockstep {

namespace {

constexpr std::int64_t kMostEpochs = 40, kUpdates = 1500, kMostChannels = 16;

/// A smaller batch gives more updates: where samples are few, and for a text, whose windows have many labels
/// each.
std::int64_t batch_of(const DataGuess& guess, const NewSamples& form) {
  if (guess.is_continuous_text) return 32;
  std::int64_t batch = 64;
  while (batch > 16 && kMostEpochs * form.samples / batch < kUpdates) batch /= 2;
  return batch;
}

/// A line with its comment in column 40, where it fits.
std::string line(std::string text, const std::string& comment) {
  if (!comment.empty()) {
    text.resize(std::max<std::size_t>(text.size() + 2, 40), ' ');
    text += "# " + shown_text(comment);
  }
  return text + "\n";
}

std::string lines_of(const std::vector<Setting>& settings, const std::string& indent) {
  std::string text;
  for (const Setting& setting : settings)
    text += line(fmt::format("{}{}: {}", indent, setting.key, setting.value), setting.comment);
  return text;
}

std::string flow_of(const std::vector<Setting>& settings) {
  std::vector<std::string> items;
  for (const Setting& setting : settings) items.push_back(fmt::format("{}: {}", setting.key, setting.value));
  return fmt::format("{{{}}}", fmt::join(items, ", "));
}

std::int64_t scaled(std::int64_t width, NetSize size) {
  return size == NetSize::small ? width : size == NetSize::medium ? 2 * width : 4 * width;
}

/// Convolutions, each stage with half the height and width of the one before.
std::string picture_net(const NewSamples& form, NetSize size) {
  const int axes = form.shape.rank() - 1;
  const std::string conv = fmt::format("conv{}d", axes);
  std::int64_t extent = form.shape[0], positions = 1;
  for (int i = 0; i < axes; ++i) {
    extent = std::min(extent, form.shape[i]);
    positions *= form.shape[i];
  }
  std::int64_t filters = scaled(axes == 3 ? 16 : 32, size);
  const int most = size == NetSize::small ? 2 : size == NetSize::medium ? 3 : 4;
  std::string text;
  for (int stage = 1; stage <= most; ++stage, filters *= 2) {
    text += fmt::format(
        "    - {0}: {{name: conv{1}, filters: {2}, kernel: 3, bias: false}}\n"
        "    - batch_norm: {{name: bn{1}, momentum: 0.9}}\n    - relu\n",
        conv, stage, filters);
    // Pooling halves the extents; below 8 nothing is left to look at.
    if (extent >= 8) {
      text += "    - max_pool\n";
      extent /= 2;
      positions >>= axes;
    }
  }
  text += fmt::format(
      "    - {}: {{name: conv_last, filters: {}, kernel: 3, bias: false}}\n"
      "    - batch_norm: {{name: bn_last, momentum: 0.9}}\n    - relu\n",
      conv, filters / 2);
  // Where a few positions are left, each may have weights of its own; of a large picture the mean is enough.
  constexpr std::int64_t kMostPositions = 64;
  text += positions <= kMostPositions ? std::string("    - flatten\n")
                                      : line("    - global_avg_pool", "the mean over all positions");
  return text + "    - dropout: {rate: 0.2}\n";
}

std::string flat_net(const NewSamples& form, NetSize size) {
  std::string text = form.shape.rank() > 1 ? "    - flatten\n" : "";
  return text + fmt::format(
                    "    - dense: {{name: dense1, units: {}, kernel_initializer: he_normal}}\n    - relu\n"
                    "    - dropout: {{rate: 0.2}}\n"
                    "    - dense: {{name: dense2, units: {}, kernel_initializer: he_normal}}\n    - relu\n",
                    scaled(128, size), scaled(64, size));
}

std::string text_net(const DataGuess& guess, const NewSamples& form, NetSize size) {
  const bool bytes = guess.is_bytes;
  return line(fmt::format("    - embedding: {{name: words, rows: {}, units: {}}}", form.vocabulary,
                          scaled(64, size)),
              bytes ? "a row for each byte" : "a row for each word") +
         "    - dropout: {rate: 0.2}\n" +
         line(fmt::format("    - conv1d: {{name: conv1, filters: {}, kernel: {}}}", scaled(128, size),
                          bytes ? 7 : 3),
              bytes ? "seven bytes at a time" : "three words at a time") +
         "    - relu\n" + line("    - reduce: {operation: max, axes: [0]}", "where each filter found most") +
         "    - dropout: {rate: 0.2}\n";
}

std::string continuous_net(const NewSamples& form, NetSize size) {
  return line(fmt::format("    - embedding: {{name: tokens, rows: {}, units: {}}}", form.vocabulary,
                          scaled(32, size)),
              "a row for each character") +
         fmt::format("    - lstm: {{name: lstm, units: {}}}\n", scaled(128, size));
}

struct Output {
  std::int64_t units;
  std::string loss, metrics, comment;
};

Output output_of(const DataGuess& guess, const NewSamples& form) {
  if (guess.is_continuous_text)
    return {form.vocabulary, "softmax_cross_entropy", "[accuracy, perplexity]", "the next character"};
  if (guess.has_many_labels)
    return {form.label_columns, "sigmoid_cross_entropy", "[{f1: {average: micro}}]",
            "one per label: yes or no"};
  if (form.classes > 0)
    return {form.classes, "softmax_cross_entropy",
            form.classes > 10 ? "[accuracy, {top_k: {k: 5}}]" : "[accuracy]", "one per class"};
  return {form.label_columns, "mean_squared_error", "[r2, root_mean_squared_error]",
          "the numbers to predict"};
}

bool is_picture(const NewSamples& form) {
  const int rank = form.shape.rank();
  return (rank == 3 || rank == 4) && form.shape[rank - 1] <= kMostChannels && form.shape[0] >= 4 &&
         form.shape[1] >= 4;
}

/// The number of epochs: about `updates` updates, at least one pass.
std::int64_t epochs_of(const NewSamples& form, NetSize size, std::int64_t batch) {
  const std::int64_t updates = size == NetSize::small ? kUpdates : size == NetSize::medium ? 4000 : 10000;
  const std::int64_t each = std::max<std::int64_t>(1, form.samples / batch);
  return std::clamp<std::int64_t>(updates / each, 1, kMostEpochs);
}

/// Comments: what the file is, and the commands that come next.
std::string head_of(const std::string& what, const std::string& file) {
  const std::string path = shown_text(file);
  const std::string train = fmt::format("mpirun -n 2 lockstep train {}", path);
  const auto command = [&](const std::string& text, const char* comment) {
    return fmt::format("#   {:<{}}  {}\n", text, train.size(), comment);
  };
  return shown_format("# Written by `lockstep new` for {}.\n", what) +
         command("lockstep check " + path, "what it does, layer by layer") +
         command("lockstep data " + path, "what the samples look like") +
         command(train, "the same bits on any number of ranks") +
         command("lockstep explain KEY", "what one of these keys means");
}

/// Labels far from mean 0 and deviation 1 take a net thousands of steps to reach: the net predicts a number
/// of that size, and a fixed layer brings it to the labels' unit, also for losses, metrics and predictions.
std::string unit_layer(const NewSamples& form) {
  if (!needs_unit(form) || form.label_columns != 1) return "";
  const auto number = [](double value) {
    return std::abs(value) < 1000 ? fmt::format("{:.4g}", value) : fmt::format("{:.0f}", value);
  };
  return line(fmt::format("    - dense: {{name: in_units, units: 1, trainable: false,\n"
                          "              kernel_initializer: {{constant: {{value: {}}}}},",
                          number(form.label_deviation)),
              "the deviation of the training labels") +
         line(fmt::format("              bias_initializer: {{constant: {{value: {}}}}}}}",
                          number(form.label_mean)),
              "and their mean: a fixed change of unit");
}

std::string net_of(const DataGuess& guess, const NewSamples& form, NetSize size) {
  if (guess.is_continuous_text) return continuous_net(form, size);
  if (guess.is_text) return text_net(guess, form, size);
  if (guess.has_no_channels) {
    NewSamples with_channel = form;
    std::vector<std::int64_t> extents;
    for (int axis = 0; axis < form.shape.rank(); ++axis) extents.push_back(form.shape[axis]);
    extents.push_back(1);
    with_channel.shape = Shape(extents);
    return line(fmt::format("    - reshape: {{shape: [{}]}}", fmt::join(extents, ", ")), "one channel") +
           picture_net(with_channel, size);
  }
  if (is_picture(form)) return picture_net(form, size);
  return flat_net(form, size);
}

}  // namespace

bool has_no_channels(const Shape& sample, bool of_bytes) {
  const int rank = sample.rank();
  if (rank != 3 && (rank != 2 || !of_bytes)) return false;
  std::int64_t least = sample[0], most = sample[0];
  for (int axis = 1; axis < rank; ++axis) {
    least = std::min(least, sample[axis]);
    most = std::max(most, sample[axis]);
  }
  // A last axis of few values, or of far fewer than the others, has channels: colours, bands of a satellite.
  constexpr std::int64_t kLeast = 8, kMostRatio = 3;
  if (least < kLeast || most > kMostRatio * least) return false;
  return rank == 2 || sample[2] > kMostChannels || least == most;
}

bool needs_unit(const NewSamples& form) {
  constexpr double kFarMean = 1, kLarge = 2, kSmall = 0.5;
  return form.label_deviation > 0 && (std::abs(form.label_mean) > kFarMean || form.label_deviation > kLarge ||
                                      form.label_deviation < kSmall);
}

std::string data_section(const DataGuess& guess, double held_out) {
  std::string text = fmt::format("data:\n  format: {}\n{}", guess.format, lines_of(guess.common, "  "));
  if (!guess.is_text)
    text += line(guess.has_no_channels ? "  normalize: all" : "  normalize: channels",
                 "mean 0 and deviation 1, by the numbers of the training set");
  if (guess.has_eval)
    return text + fmt::format("  train: {}\n  eval: {}\n", flow_of(guess.train), flow_of(guess.eval));
  return text +
         line(fmt::format("  holdout: {}", held_out), "the share that is for evaluation, chosen at random") +
         "  eval: {}\n";
}

std::string new_configuration(const DataGuess& guess, const NewSamples& form, const NewChoices& choices) {
  const Output output = output_of(guess, form);
  const std::int64_t batch = batch_of(guess, form);
  const std::int64_t epochs = choices.epochs.value_or(epochs_of(form, choices.size, batch));
  const std::int64_t updates = epochs * std::max<std::int64_t>(1, (form.samples + batch - 1) / batch);
  std::string text = head_of(guess.what, choices.path);
  for (const std::string& assumed : guess.assumed) text += shown_format("# assumed: {}\n", assumed);
  text += line("seed: 1", "of all randomness") +
          line("shards: 8", "up to 8 ranks x threads, all with the same bits");
  text += fmt::format("\n{}", data_section(guess, choices.held_out));
  text += "\nmodel:\n  layers:\n" + net_of(guess, form, choices.size);
  text += line(fmt::format("    - dense: {{name: {}, units: {}}}", form.classes > 0 ? "logits" : "output",
                           output.units),
               output.comment);
  if (form.classes == 0) text += unit_layer(form);
  text += fmt::format("  loss: {}\n", output.loss);
  text +=
      fmt::format("\noptimizer:\n  adam:\n{}",
                  line(fmt::format("    learning_rate: {{cosine_decay: {{initial: {}, decay_steps: {}}}}}",
                                   guess.is_continuous_text ? "0.008" : "0.002", updates),
                       "to 0 at the end"));
  text += "\ntrain:\n" + line(fmt::format("  batch_size: {}", batch), "of all ranks together") +
          line(fmt::format("  epochs: {}", epochs), "passes over the training set");
  text += fmt::format("\neval: {{every_epochs: 1, metrics: {}}}\n", output.metrics);
  // A checkpoint of a small net takes as long as an epoch of few samples.
  text += fmt::format("checkpoint: {{every_epochs: {}, keep: 3}}\n", std::max<std::int64_t>(1, epochs / 10)) +
          "summary: {every_steps: 20}\n";
  return text;
}

}  // namespace lockstep
