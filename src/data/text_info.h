// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The text-specific part of a data set: the tokenizer and the vocabulary. The same for the
// training and the evaluation set; part of the data set's fingerprint.
#pragma once

#include "data/tokenizer.h"
#include "data/vocabulary.h"

namespace lockstep {

struct TextInfo {
  Tokenizer tokenizer;
  Vocabulary vocabulary;
  bool next_token_labels = false;  ///< features are windows of text, labels the token after each
};

}  // namespace lockstep
