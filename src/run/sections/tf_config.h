// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The environment variable TF_CONFIG, by which TensorFlow's programs are told their cluster:
//
//   {"cluster": {"chief": ["n01:2222"], "worker": ["n02:2222"], "ps": ["n03:2222"]},
//    "task": {"type": "worker", "index": 0}}
//
// `task` may be left out where all ranks have the same text: addresses then say who is what
// (comm/cluster_roles.h). `environment`, `model_dir`, `service`, `session_master` and `eval_session_master`
// are allowed and have no meaning here.
#pragma once

#include <string>

#include "comm/cluster_roles.h"
#include "core/function_ref.h"
#include "train/cluster_tasks.h"

namespace lockstep {

/// Throws Error(config).
ClusterDescription parse_tf_config(const std::string& text);

/// The tasks of section `cluster`: those that it names, or those of TF_CONFIG if it says so. Throws
/// Error(config), also if there is no such variable.
ClusterDescription cluster_tasks(const Params& section, FunctionRef<const char*(const char* name)> get_env);

/// Sets the number of servers of a section that leaves it to TF_CONFIG. Throws as cluster_tasks() does.
void resolve_tf_config(ClusterOptions& options, const Params& section,
                       FunctionRef<const char*(const char* name)> get_env);

}  // namespace lockstep
