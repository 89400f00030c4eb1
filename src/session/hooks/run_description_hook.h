// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What TensorBoard shows of a run in addition to its values: the graph, the hyper-parameters and how the run
// ended, the configuration as text. Each job writes them anew; drop_events_after() removes those of earlier
// ones.
#pragma once

#include <optional>
#include <string>

#include "io/summary_plugins.h"
#include "session/hook.h"

namespace lockstep {

class RunDescriptionHook final : public Hook {
 public:
  struct Options {
    std::string graph_def = {};  ///< empty: none
    std::optional<HParamsSession> hparams = {};
    std::string configuration = {};  ///< empty: none
    bool any() const { return !graph_def.empty() || hparams.has_value() || !configuration.empty(); }
  };

  explicit RunDescriptionHook(Options options)
      : Hook("run_description", HookScope::chief_only), options_(std::move(options)) {}

  /// Called after the hook that opens the files (SummarySaverHook).
  void after_create_session(HookContext& context) override;
  void end(HookContext& context) override;

 private:
  const Options options_;
};

}  // namespace lockstep
