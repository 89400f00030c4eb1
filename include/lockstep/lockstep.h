// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Everything that programs and plugins may use, but for eigen.h, which needs Eigen, testing.h, and c_api.h. A
// program that names the headers that it needs compiles in less time.
#pragma once

#include <lockstep/base.h>
#include <lockstep/cluster.h>
#include <lockstep/estimator.h>
#include <lockstep/experiment.h>
#include <lockstep/files.h>
#include <lockstep/hook.h>
#include <lockstep/layer.h>
#include <lockstep/loss.h>
#include <lockstep/metric.h>
#include <lockstep/optimizer.h>
#include <lockstep/plugin.h>
#include <lockstep/predictor.h>
#include <lockstep/program.h>
#include <lockstep/reader.h>
#include <lockstep/ready_made.h>
#include <lockstep/services.h>
#include <lockstep/session.h>
#include <lockstep/training.h>
