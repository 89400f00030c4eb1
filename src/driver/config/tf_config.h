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
#include "train/server_layout.h"

namespace lockstep {

/// Throws Error(config).
ClusterDescription parse_tf_config(const std::string& text);

/// If the options say tasks: TF_CONFIG: takes them from the environment. Throws Error(config), also if there
/// is no such variable.
void resolve_tf_config(ClusterOptions& options, FunctionRef<const char*(const char* name)> get_env);

}  // namespace lockstep
