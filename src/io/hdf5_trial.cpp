// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5_trial.h"

#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <vector>

#include "io/file_descriptor.h"
#include "io/file_error.h"
#include "io/hdf5_handle.h"
#include "io/hdf5_output.h"

namespace lockstep {

double hdf5_trial(const std::string& path, std::size_t bytes) {
  const auto begin = std::chrono::steady_clock::now();
  const Hdf5Lock lock;
  const Hdf5Context context{ErrorKind::checkpoint, path, ""};
  std::vector<float> written(bytes / sizeof(float)), read(written.size());
  for (std::size_t i = 0; i < written.size(); ++i) written[i] = static_cast<float>(i);
  const hsize_t count = written.size();
  const FileDescriptor descriptor(::open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600));
  if (descriptor.get() < 0) throw file_error(ErrorKind::checkpoint, "create", path, errno);
  Hdf5Output output{.descriptor = descriptor.get()};
  {
    const Hdf5Handle access = hdf5_access_properties(context);
    hdf5_write_to(access, output, context);
    const Hdf5Handle file(
        hdf5_checked(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), context, "create"),
        H5Fclose);
    const Hdf5Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose);
    const Hdf5Handle data(hdf5_checked(H5Dcreate2(file.get(), "trial", hdf5_file_type(DType::f32),
                                                  space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                                       context, "create a dataset"),
                          H5Dclose);
    hdf5_checked(H5Dwrite(data.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, written.data()),
                 context, "write");
  }
  if (output.error != 0) throw file_error(ErrorKind::checkpoint, "write", path, output.error);
  const Hdf5Handle file = hdf5_open_file(path, context);
  const Hdf5Handle data(hdf5_checked(H5Dopen2(file.get(), "trial", H5P_DEFAULT), context, "open the dataset"),
                        H5Dclose);
  hdf5_checked(H5Dread(data.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.data()), context,
               "read");
  if (read != written) throw Error(ErrorKind::checkpoint, "what was read is not what was written", path);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace lockstep
