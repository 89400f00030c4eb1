// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// At the end of a job, writes the tables of embedding layers for TensorBoard's projector, with the words of
// the vocabulary, and a picture of each in the plane of its principal components
// (principal_components/<table>). An error is a warning.
#pragma once

#include <string>
#include <vector>

#include "session/hook.h"

namespace lockstep {

class ProjectorHook final : public Hook {
 public:
  /// `tables`: names of variables, "words/embeddings".
  explicit ProjectorHook(std::vector<std::string> tables)
      : Hook("projector", HookScope::chief_only), tables_(std::move(tables)) {}
  void end(HookContext& context) override;

 private:
  const std::vector<std::string> tables_;
};

}  // namespace lockstep
