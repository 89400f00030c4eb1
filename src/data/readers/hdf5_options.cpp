// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/hdf5_options.h"

#include "data/reader_options.h"
#include "data/readers/hdf5_channels.h"
#include "data/readers/hdf5_texts.h"
#include "data/readers/sequence_rows.h"

namespace lockstep {

namespace {

std::vector<std::string> column_names(const Params& params, const ParamSpec& option) {
  if (!params.has(option.name)) return {};
  if (params.strings(option.name).empty())
    throw params.error(option.name, "names no column", "Name at least one, or write null.");
  return params.strings(option.name);
}

constexpr std::array kOptions = with_store_options(with_sequence_options(std::array{
    path_spec("the file; a list or a pattern (part*.h5) of files is read as one; relative to the config "
              "file's folder"),
    option<&Hdf5Options::features>(
        "features", kRequired, {},
        "path of a dataset in the file: train/image; or of a table, or one of its columns: events.energy"),
    option<&Hdf5Options::labels>("labels", "null", {},
                                 "path of a dataset, or of a column of a table (events.kind): integers are "
                                 "class indices, floats targets; null: none"),
    option_as<is_second_choice, &Hdf5Options::samples_last>(
        ParamType::string, "sample_axis", "first", one_of("first|last"),
        "the axis of a dataset that counts samples; arrays of MATLAB have the axes that MATLAB shows"),
    layout_option<&Hdf5Options::channels_first>(),
    option_as<channels_option, &Hdf5Options::channels>(
        ParamType::integers, "channels", "null", between(0, 1e9).or_null(),
        "the channels to read, from 0, in the order of the features: of the last axis of a sample in the "
        "file, or of the first one with channels_first; null: all"),
    option_as<class_list, &Hdf5Options::classes>(
        ParamType::strings, "classes", "null", {},
        "if labels are texts, the classes in the order of their indices; null: all texts in the labels of "
        "the training set, sorted"),
    option<&Hdf5Options::allow_fill>(
        "allow_fill", "false", {},
        "read the fill value (usually 0) where no value was ever written; false: that is an error"),
    option_as<column_names, &Hdf5Options::columns>(
        ParamType::strings, "columns", "null", {},
        "columns of a table (a compound type) that are features, in this order: names, or patterns of names "
        "(\"x*\"); null: all with numbers but the label"),
    option<&Hdf5Options::groups>("groups", "null", {},
                                 "each sample is a group of the file: a pattern of their names (sample_*); "
                                 "features and labels are datasets or attributes in each group, without an "
                                 "axis of samples; null: the first axis counts samples"),
    option_as<step_window, &Hdf5Options::window>(
        ParamType::node, "window", "null", in_words("map, or null"),
        "samples are windows of steps along the first axis, with the label or target of a later step: "
        "{inputs: 4, horizon: 1}"),
    option<&NetcdfOptions::unpack>(
        "unpack", "true", {},
        "apply the attributes scale_factor, add_offset and _Unsigned of netCDF, where a dataset has them"),
    option<&NetcdfOptions::fill>(
        "fill", "null", between(-1e30, 1e30).or_null(),
        "value in place of those that netCDF's attributes _FillValue and "
        "missing_value name; null, and of labels that are classes: they are errors")}));

}  // namespace

std::span<const ParamSpec> hdf5_table() { return kOptions; }

Hdf5Part hdf5_part(const std::string& path, const Params& params) {
  const auto options = params.as<Hdf5Options>();
  return {path,
          options.features,
          options.labels ? &*options.labels : nullptr,
          params.as<NetcdfOptions>(),
          options.columns,
          options.samples_last};
}

}  // namespace lockstep
