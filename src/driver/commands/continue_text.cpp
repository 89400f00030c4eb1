// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The context is placed at the beginning of a window of the T tokens that the model was trained on. The rest
// of the window is padding (id 0), which a causal model does not see. The outputs after the context's last
// token choose the next one. A context longer than T loses its beginning.
#include "driver/commands/predict.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/launch.h"
#include "comm/shared_error.h"
#include "core/error.h"
#include "core/log.h"
#include "data/text_info.h"
#include "data/utf8.h"
#include "io/print_result.h"
#include "run/setup/run_context.h"
#include "run/setup/run_directory.h"
#include "session/run_vocabulary.h"
#include "tools/predict/token_sampler.h"
#include "train/batch_predictor.h"
#include "train/rows_batch_source.h"

namespace lockstep {

namespace {

/// The prompt's ids. An unknown character is an error: a text cannot go on from what the model never saw.
std::vector<std::int32_t> prompt_ids(const std::string& prompt, const TextInfo& text) {
  const Vocabulary& vocabulary = text.vocabulary;
  if (const std::size_t bad = first_invalid_utf8(prompt); bad != std::string::npos)
    throw Error(ErrorKind::usage, fmt::format("--prompt: byte {} is not UTF-8", bad + 1));
  std::vector<std::int32_t> ids;
  if (text.tokenizer.unit == TokenUnit::bpe) {
    text.for_each_id(prompt, [&](std::int32_t id) { ids.push_back(id); });
  } else {
    text.tokenizer.for_each(prompt, [&](std::string_view token) {
      ids.push_back(vocabulary.id(token));
      if (!vocabulary.is_special(ids.back())) return;
      if (text.tokenizer.unit == TokenUnit::characters)
        throw Error(ErrorKind::usage,
                    fmt::format("--prompt: the character '{}' is not in the vocabulary", escaped_word(token)),
                    {}, "The run's vocabulary.txt lists those that are.");
      log_warning("--prompt: '{}' is not in the vocabulary: it counts as an unknown word", token);
    });
  }
  if (ids.empty())
    throw Error(ErrorKind::usage, "--prompt holds no token", {}, "Give at least one word or character.");
  return ids;
}

/// All tokens but the special ones.
std::vector<std::int32_t> plain_tokens(const TextInfo& text) {
  std::vector<std::int32_t> ids;
  for (std::int64_t id = 0; id < text.vocabulary.size(); ++id)
    if (!text.is_special(id)) ids.push_back(static_cast<std::int32_t>(id));
  return ids;
}

/// The model on one window at a time; `head` has the outputs that choose the next token.
class WindowModel {
 public:
  WindowModel(RunContext& context, int head)
      : head_(head),
        window_(static_cast<std::size_t>(context.train_data().feature_shape().num_elements())),
        source_(std::ssize(window_), one_sample(context.shards())),
        predictor_(context.executor_context(),
                   {.sample_counts = kOneSample, .values = BatchPredictor::Values::outputs}) {
    context.workers().grow_scratch(predictor_.scratch_bytes());
    predictor_.refresh_weights();
    source_.set(window_.data());
  }

  /// The outputs after the last of `ids`.
  std::span<const float> run(const std::vector<std::int32_t>& ids) {
    const std::size_t used = std::min(ids.size(), window_.size());
    std::fill(window_.begin(), window_.end(), 0.0F);
    std::transform(ids.end() - static_cast<std::ptrdiff_t>(used), ids.end(), window_.begin(),
                   [](std::int32_t id) { return static_cast<float>(id); });
    predictor_.run(source_, source_.batch());
    const std::span<const float> outputs = predictor_.rows(head_);
    const std::size_t classes = outputs.size() / window_.size();
    return outputs.subspan((used - 1) * classes, classes);
  }

 private:
  static constexpr std::int64_t kOneSample[] = {1};
  /// The sample is the first microshard; all others are empty.
  static std::vector<std::int64_t> one_sample(int shards) {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(shards));
    sizes.front() = 1;
    return sizes;
  }

  int head_;
  std::vector<float> window_;
  RowsBatchSource source_;
  BatchPredictor predictor_;
};

/// The head whose outputs are {tokens of a window, size of the vocabulary}.
int next_token_head(RunContext& context) {
  const TextInfo* text = context.train_data().text();
  if (context.train_data().single() == nullptr)
    throw Error(ErrorKind::config, "the samples of the run have several inputs",
                context.config().section("").where("data"),
                "--prompt goes on with a text alone; use --input and --output.");
  if (text == nullptr || !text->next_token_labels)
    throw Error(ErrorKind::config, "the run is no language model: its data is not read by text_windows",
                context.config().section("").where("data"),
                "--prompt needs one; other models take --input and --output.");
  const Shape wanted{context.train_data().feature_shape()[0], text->vocabulary.size()};
  int number = 0;
  std::string found;
  for (const Head& head : *context.model().heads) {
    if (head.shape == wanted) return number;
    found += fmt::format("{}{}", found.empty() ? "" : ", ", head.shape.to_string());
    ++number;
  }
  throw Error(ErrorKind::config,
              fmt::format("the model's output is {}, but to go on with a text takes {} (tokens of a window x "
                          "vocabulary)",
                          found, wanted.to_string()));
}

}  // namespace

int continue_text(const SampleArguments& arguments) {
  const RunTarget target = resolve_target(arguments.run);
  return run_on_ranks(
      {target.config.comm.timeout_seconds, target.config.comm.start_timeout_seconds}, arguments.run.quiet,
      [&](CommEnvironment& environment) {
        Communicator& world = environment.world();
        if (world.size() > 1)
          throw SharedError(Error(ErrorKind::usage, "predict --prompt works on one rank", {},
                                  "Each token needs the one before: start it without mpirun."));
        const FoundCheckpoint found = open_checkpoint(
            world, target.run_dir, target.checkpoint.empty() ? arguments.run.checkpoint : target.checkpoint);
        if (!found.exists())
          throw Error(ErrorKind::checkpoint, "there is no checkpoint to predict with", target.run_dir,
                      "Train first, or name one with --checkpoint.");
        RunContext context(
            environment, target.config, found.header.shards,
            {.train = true, .kept_in = target.run_dir, .kept = found.header.kept, .described = true});
        check_vocabulary(target.run_dir, context.train_data());
        const int head = next_token_head(context);
        const TextInfo& text = *context.train_data().text();
        std::vector<std::int32_t> ids = prompt_ids(arguments.prompt, text);
        restore_variables(world, found, *context.model().variables, arguments.run.averages);

        WindowModel model(context, head);
        const TokenSampler sampler(arguments.choice, plain_tokens(text));
        const std::size_t given = ids.size();
        for (std::int64_t i = 0; i < arguments.length; ++i)
          ids.push_back(sampler.choose(model.run(ids), static_cast<std::uint32_t>(i)));
        const char* const between = text.tokenizer.unit == TokenUnit::words && ids.size() > given ? " " : "";
        print_lines(arguments.prompt + between + text.text_of(std::span(ids).subspan(given)) + "\n");
        return 0;
      });
}

}  // namespace lockstep
