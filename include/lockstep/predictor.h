// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A trained model inside a program, and as an ONNX file (docs/predictor.md).
#pragma once

#include "api/predictor.h"
#include "run/jobs/onnx_export.h"
