// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Advice for a word that is not known here: the word's name in Lockstep, where people bring it from Keras,
// PyTorch, TensorFlow or YAML 1.1, or what to do instead where Lockstep has no such thing. To add a word: a
// line in synonyms.txt, which is compiled in.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A word that people bring.
struct Synonym {
  /// Where it is expected: "optimizer", "loss", "layer", ... for a name; "key of " and the beginning of a
  /// subject ("key of section train", "key of ") for a key; "value of " and a key for a choice; "command
  /// line".
  std::string_view place;
  /// In lower case, without _ - . and blanks. "number" stands for every number, "anything" for every text
  /// that nothing else is said of.
  std::string_view word;
  /// The name here; empty if there is none.
  std::string_view name;
  /// What to do, where a name alone does not say it. May be empty if there is a name.
  std::string_view advice;
};

/// What a file of synonyms says, in its order. The first synonym that fits is used.
struct SynonymTable {
  std::vector<Synonym> synonyms;
  std::deque<std::string> lines;  ///< The texts that the synonyms refer to.
};
/// Reads a text in the format that the head of synonyms.txt describes. Throws Error(bug) with the number of
/// the line that has another form.
SynonymTable parse_synonyms(std::string_view text);
/// The contents of synonyms.txt, parsed on the first call.
std::span<const Synonym> all_synonyms();

/// A word as the table has it: in lower case, without _ - . and blanks.
std::string plain_word(std::string_view word);
/// Every line about a word, wherever it is expected: "batchSize", "nn.Linear". The word after the last dot
/// counts where the whole word has none.
std::vector<Synonym> synonyms_of(std::string_view word);

/// Advice for an unknown key of `subject` ("layer dense", "section train"), whose keys are `known`.
std::string advice_for_key(std::string_view key, std::string_view subject,
                           std::span<const std::string_view> known);
/// The known key that was probably meant; empty if there is none.
std::string name_for_key(std::string_view key, std::string_view subject,
                         std::span<const std::string_view> known);
/// Advice for an unknown name of a `what` ("layer", "optimizer", ...).
std::string advice_for_name(std::string_view what, std::string_view name,
                            std::span<const std::string_view> known);
/// Advice for `value` where the options of `subject` ("section train") should stand; `help` if nothing better
/// is known.
std::string advice_for_value(std::string_view subject, std::string_view value, std::string_view help);
/// What the table says of an unknown command or option of the command line; empty if it says nothing.
std::string advice_for_command_line(std::string_view word);
/// Advice for a text that is not one of the choices of option `key`; `help` if nothing better is known.
std::string advice_for_choice(std::string_view key, std::string_view value,
                              std::span<const std::string_view> choices, std::string_view help);

}  // namespace lockstep
