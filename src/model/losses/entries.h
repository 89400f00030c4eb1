// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The losses, one entry each; loss_table.cpp lists them.
#pragma once

#include "model/loss.h"

namespace lockstep {

extern const LossEntry kSoftmaxCrossEntropyEntry;

}  // namespace lockstep
