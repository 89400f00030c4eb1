// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the readers: what a reader of records makes for training, evaluation, a trained set's classes,
// and prediction. They differ in where the classes of labels that are texts come from.
#pragma once

#include <optional>
#include <string>

#include "config/params.h"
#include "data/data_files.h"
#include "data/reader_dataset.h"
#include "data/reader_options.h"
#include "data/reader_table.h"

namespace lockstep {

/// `Files` finds the records of files: Files(params, paths).parts(rows, with labels, a prediction, classes),
/// its classes(rows), which looks at all labels, and listed_classes(params), those of the option.
template <typename Files>
struct RecordParts {
  static DatasetParts make(const Params& params, const std::string& base_directory) {
    const std::optional<RowRange> rows = rows_option(params);
    return Files(params, files_of_path(params, base_directory))
        .parts(rows, true, false, [&](const Files& self) { return self.classes(rows); });
  }

  static DatasetParts make_evaluation(const Params& params, const Params& train,
                                      const std::string& base_directory) {
    return Files(params, files_of_path(params, base_directory))
        .parts(rows_option(params), true, false, [&](const Files&) {
          if (const auto listed = Files::listed_classes(train)) return *listed;
          return Files(train, files_of_path(train, base_directory)).classes(rows_option(train));
        });
  }

  static DatasetParts make_as_trained(const Params& params, const ReaderDataset& trained,
                                      const std::string& base_directory) {
    return Files(params, files_of_path(params, base_directory))
        .parts(rows_option(params), true, false, [&](const Files&) { return trained.class_names(); });
  }

  static DatasetParts make_input(const Params& params, const InputRequest& request) {
    DatasetParts parts =
        Files(params, request.paths).parts(std::nullopt, request.labels, true, [&](const Files&) {
          return request.class_names;
        });
    check_feature_shape(parts.feature_shape, request.feature_shape, parts.source);
    return parts;
  }
};

}  // namespace lockstep
