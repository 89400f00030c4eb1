// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Tasks of a cluster, and where variables live (docs/cluster.md).
#pragma once

#include "comm/cluster_roles.h"
#include "comm/cluster_spec.h"
#include "comm/server.h"
#include "train/device_functions.h"
