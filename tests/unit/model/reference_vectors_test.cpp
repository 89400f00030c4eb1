// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Layers are compared with another framework: every case of every tests/reference/*.h5, which the script
// next to it makes (common.py describes a case). Outputs, gradients of inputs and variables, and moving
// statistics are compared.
#include <hdf5.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <ostream>
#include <set>

#include "io/hdf5_handle.h"
#include "model/layer_runner.h"
#include "model_testing.h"
#include "support/test_folders.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

struct Array {
  std::vector<std::int64_t> extents;
  std::vector<float> values;
  Shape per_sample() const {
    LOCKSTEP_REQUIRE(!extents.empty(), ErrorKind::data, "an array needs an axis of samples");
    return Shape(std::span<const std::int64_t>(extents).subspan(1));
  }
};

/// One group of a file.
struct ReferenceCase {
  std::string file, name, yaml;
  std::vector<std::int64_t> microshards;
  double tolerance = 1e-5;
  bool relu = false;
  std::map<std::string, Array> arrays;  ///< by path: "inputs/0", "gradients/kernel"

  const Array* find(const std::string& path) const {
    const auto found = arrays.find(path);
    return found == arrays.end() ? nullptr : &found->second;
  }
};

void PrintTo(const ReferenceCase& test, std::ostream* out) { *out << test.yaml; }

Hdf5Context context_of(const std::string& where) { return {ErrorKind::data, where, ""}; }

template <typename T>
std::vector<T> attribute(hid_t group, const char* name, hid_t type, const Hdf5Context& context) {
  const Hdf5Handle handle(hdf5_checked(H5Aopen(group, name, H5P_DEFAULT), context, name), H5Aclose);
  const Hdf5Handle space(hdf5_checked(H5Aget_space(handle.get()), context, name), H5Sclose);
  std::vector<T> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get())));
  hdf5_checked(H5Aread(handle.get(), type, values.data()), context, name);
  return values;
}

std::string text_attribute(hid_t group, const char* name, const Hdf5Context& context) {
  const Hdf5Handle handle(hdf5_checked(H5Aopen(group, name, H5P_DEFAULT), context, name), H5Aclose);
  const Hdf5Handle type(hdf5_checked(H5Aget_type(handle.get()), context, name), H5Tclose);
  LOCKSTEP_REQUIRE(H5Tget_class(type.get()) == H5T_STRING && H5Tis_variable_str(type.get()) == 0,
                   ErrorKind::data, "{}: attribute {} must be a text of fixed length, as common.py writes it",
                   context.where, name);
  std::string text(H5Tget_size(type.get()), '\0');
  hdf5_checked(H5Aread(handle.get(), type.get(), text.data()), context, name);
  return text.substr(0, text.find('\0'));
}

Array array_of(hid_t object, const Hdf5Context& context) {
  const Hdf5Handle space(hdf5_checked(H5Dget_space(object), context, "read"), H5Sclose);
  std::vector<hsize_t> extents(
      static_cast<std::size_t>(hdf5_checked(H5Sget_simple_extent_ndims(space.get()), context, "read")));
  H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  Array array;
  std::int64_t count = 1;
  for (hsize_t extent : extents) {
    array.extents.push_back(static_cast<std::int64_t>(extent));
    count *= array.extents.back();
  }
  array.values.resize(static_cast<std::size_t>(count));
  hdf5_checked(H5Dread(object, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.values.data()), context,
               "read");
  return array;
}

std::vector<std::string> members(hid_t group) {
  std::vector<std::string> names;
  const auto add = [](hid_t, const char* name, const H5L_info_t*, void* list) -> herr_t {
    static_cast<std::vector<std::string>*>(list)->emplace_back(name);
    return 0;
  };
  hsize_t at = 0;
  H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &at, add, &names);
  return names;
}

/// Of a group and the groups in it.
void read_arrays(hid_t group, const std::string& path, std::map<std::string, Array>& arrays,
                 const Hdf5Context& context) {
  for (const std::string& name : members(group)) {
    const Hdf5Handle item(hdf5_checked(H5Oopen(group, name.c_str(), H5P_DEFAULT), context, "open"), H5Oclose);
    if (H5Iget_type(item.get()) == H5I_GROUP)
      read_arrays(item.get(), path + name + "/", arrays, context);
    else
      arrays[path + name] = array_of(item.get(), context);
  }
}

ReferenceCase read_case(hid_t file, const std::string& file_name, const std::string& name) {
  const Hdf5Context context = context_of(file_name + ".h5, case " + name);
  const Hdf5Handle group(hdf5_checked(H5Gopen2(file, name.c_str(), H5P_DEFAULT), context, "open"), H5Gclose);
  ReferenceCase made{
      .file = file_name,
      .name = name,
      .yaml = text_attribute(group.get(), "yaml", context),
      .microshards = attribute<std::int64_t>(group.get(), "microshards", H5T_NATIVE_INT64, context)};
  if (H5Aexists(group.get(), "tolerance") > 0)
    made.tolerance = attribute<double>(group.get(), "tolerance", H5T_NATIVE_DOUBLE, context).at(0);
  made.relu = H5Aexists(group.get(), "relu") > 0;
  read_arrays(group.get(), "", made.arrays, context);
  return made;
}

std::vector<ReferenceCase> all_cases() {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(test_reference()))
    if (entry.path().extension() == ".h5") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<ReferenceCase> cases;
  for (const fs::path& path : files) {
    const Hdf5Handle file = hdf5_open_file(path.string(), context_of(path.string()));
    for (const std::string& name : members(file.get()))
      cases.push_back(read_case(file.get(), path.stem().string(), name));
  }
  return cases;
}

/// A case's arrays as the test uses them: what is left over at the end was misnamed.
class Reader {
 public:
  explicit Reader(const ReferenceCase& test) : test_(test) {
    for (const auto& [path, array] : test.arrays) unused_.insert(path);
  }
  const Array* find(const std::string& path) {
    unused_.erase(path);
    return test_.find(path);
  }
  const Array& get(const std::string& path) {
    const Array* found = find(path);
    LOCKSTEP_REQUIRE(found != nullptr, ErrorKind::data, "{}.h5, case {}: no {}", test_.file, test_.name,
                     path);
    return *found;
  }
  std::vector<Shape> shapes(const std::string& kind) {
    std::vector<Shape> all;
    while (const Array* array = find(fmt::format("{}/{}", kind, all.size())))
      all.push_back(array->per_sample());
    return all;
  }
  const std::set<std::string>& unused() const { return unused_; }

 private:
  const ReferenceCase& test_;
  std::set<std::string> unused_;
};

/// |actual - expected| <= tolerance * the largest |expected|; NaN fails.
void expect_near(std::span<const float> actual, const Array& expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(actual.size(), expected.values.size()) << what;
  double largest = 0;
  for (float value : expected.values) largest = std::max(largest, static_cast<double>(std::abs(value)));
  int reported = 0;
  for (std::size_t i = 0; i < actual.size() && reported < 5; ++i) {
    const double error = std::abs(static_cast<double>(actual[i]) - static_cast<double>(expected.values[i]));
    if (error <= tolerance * largest) continue;
    ADD_FAILURE() << what << ": element " << i << " is " << actual[i] << ", not " << expected.values[i]
                  << " (tolerance " << tolerance * largest << ")";
    ++reported;
  }
}

class ReferenceVectors : public testing::TestWithParam<ReferenceCase> {};

TEST_P(ReferenceVectors, MatchTheOtherFramework) {
  const ReferenceCase& test = GetParam();
  Reader reader(test);
  const std::vector<Shape> inputs = reader.shapes("inputs"), outputs = reader.shapes("outputs");
  ASSERT_FALSE(outputs.empty());
  const bool training = !reader.shapes("dy").empty();
  const auto layer = layer_from(test.yaml);
  ASSERT_TRUE(!test.relu || layer->fuse(Fusible::relu));
  ASSERT_EQ(layer->infer(inputs), outputs) << test.yaml;
  LayerRunnerOptions options{.microshards = test.microshards, .training = training};
  const auto item = [](const char* kind, auto i) { return fmt::format("{}/{}", kind, i); };
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (reader.find(item("dx", i)) == nullptr) options.fixed_inputs.push_back(static_cast<int>(i));
  LayerRunner run(*layer, inputs, options);
  for (int i = 0; i < run.num_inputs(); ++i) run.input(i) = reader.get(item("inputs", i)).values;

  // By the name without the layer's: "kernel" or "forward/kernel".
  std::map<std::string, VariableId> variables;
  for (std::size_t v = 0; v < run.variables().variables().size(); ++v) {
    const Variable& variable = run.variables().variables()[v];
    const auto id = static_cast<VariableId>(v);
    const std::string name = variable.name.substr(layer->name().size() + 1);
    variables.emplace(name, id);
    const std::string path = "variables/" + name;
    const Array* values = variable.trainable ? &reader.get(path) : reader.find(path);
    if (values == nullptr) continue;
    ASSERT_EQ(Shape(values->extents), variable.shape) << path;
    std::copy(values->values.begin(), values->values.end(), run.variables().tensor(id).f32());
  }
  run.variables().to_device();

  run.forward();
  for (int o = 0; o < run.num_outputs(); ++o)
    expect_near(run.output(o), reader.get(item("outputs", o)), test.tolerance, item("outputs", o));
  for (const auto& [name, id] : variables)
    if (const Array* moved = reader.find("state/" + name)) {
      const Tensor tensor = run.variables().tensor(id);
      expect_near({tensor.f32(), static_cast<std::size_t>(tensor.num_elements())}, *moved, test.tolerance,
                  "state/" + name);
    }
  if (training) {
    for (int o = 0; o < run.num_outputs(); ++o) run.output_gradient(o) = reader.get(item("dy", o)).values;
    run.backward();
    for (int i = 0; i < run.num_inputs(); ++i)
      if (const Array* dx = reader.find(item("dx", i)))
        expect_near(run.input_gradient(i), *dx, test.tolerance, item("dx", i));
    for (const auto& [name, id] : variables)
      if (run.variables()[id].trainable)
        expect_near(run.gradient(id), reader.get("gradients/" + name), test.tolerance, "gradients/" + name);
  }
  EXPECT_TRUE(reader.unused().empty())
      << *reader.unused().begin() << " belongs to nothing that the layer has";
}

INSTANTIATE_TEST_SUITE_P(AllFiles, ReferenceVectors, testing::ValuesIn(all_cases()),
                         [](const auto& test) { return test.param.file + "_" + test.param.name; });

}  // namespace
}  // namespace lockstep
