// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// An update rule or a schedule of one's own (docs/adding_an_optimizer.md).
#pragma once

#include <lockstep/base.h>

#include "optim/element_rule.h"
#include "optim/optimizer_table.h"
#include "optim/schedule.h"
#include "optim/update_context.h"
