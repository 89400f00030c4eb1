// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Errors, shapes, arrays, devices, tables of options, and the version.
#pragma once

#include "config/option.h"
#include "core/device.h"
#include "core/error.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "core/version.h"
