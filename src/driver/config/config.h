// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A run's configuration: YAML text plus overrides, checked. Sections of the driver become Params; `data`,
// `model` and `optimizer` stay nodes, because the tables of what they name check them (readers, layers,
// optimizers). Reads one file, no MPI: every rank may load it, and errors appear before anything starts.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/params.h"

namespace lockstep {

struct Config {
  Node root;                   ///< as written, with overrides applied
  std::string path;            ///< the file; empty if the text came from elsewhere
  std::string base_directory;  ///< absolute; where relative paths in the configuration begin
  Params general, train, gradients, eval, checkpoint, warm_start, summary, comm, precision;
  Node data, model, optimizer, hooks;
};

/// Reads and checks a file. `overrides` are "a.b.c=value" (--set), applied in order before the check.
/// Throws Error(config) with position, or Error(usage) for an override of a wrong form.
Config load_config(const std::string& path, std::span<const std::string> overrides = {});
/// The same for text, such as the configuration in a checkpoint. `name` is what positions begin with;
/// relative paths begin in the current folder unless the text has a base_directory.
Config config_from_text(std::string_view text, const std::string& name,
                        std::span<const std::string> overrides = {});

/// `path` as the configuration means it: absolute, or relative to base_directory.
std::string resolve_path(const Config& config, const std::string& path);
/// comm.timeout_seconds; nothing: automatic.
std::optional<double> comm_timeout_seconds(const Config& config);
/// Where `train CONFIG` puts its results without --run-dir: "runs/digits" for "examples/digits.yaml".
std::string default_run_directory(const std::string& config_path);
/// The configuration as run: every option of the driver's sections with its value, base_directory absolute.
/// A run directory's config.yaml is to_yaml() of it.
Node resolved_config(const Config& config);

}  // namespace lockstep
