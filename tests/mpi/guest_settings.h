// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// For guest_program.cpp: what a program around Lockstep sets for itself, and how it finds it again.
#pragma once

#include <dlfcn.h>
#include <fmt/format.h>
#include <hdf5.h>
#include <mpi.h>

#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace lockstep {

inline int errors_of_world = 0;
inline volatile std::sig_atomic_t signals_of_program = 0;

inline void note_error(MPI_Comm*, int*, ...) { ++errors_of_world; }
inline void note_signal(int) { signals_of_program = signals_of_program + 1; }
inline herr_t note_hdf5(hid_t, void*) { return 0; }

[[noreturn]] inline void wrong(const std::string& what) {
  std::printf("wrong: %s\n", what.c_str());
  std::fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 99);
  std::abort();
}

inline void require(bool condition, const std::string& what) {
  if (!condition) wrong(what);
}

/// Of the OpenMP runtime that oneDNN has brought with it; 0: there is none.
inline int openmp_threads() {
  const auto get = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  return get != nullptr ? get() : 0;
}
inline void set_openmp_threads(int threads) {
  if (const auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads")))
    set(threads);
}

/// What the program has set, and must find again.
class Settings {
 public:
  Settings() {
    MPI_Query_thread(&level_);
    MPI_Comm_create_errhandler(note_error, &handler_);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler_);
    std::signal(SIGINT, note_signal);
    H5Eset_auto2(H5E_DEFAULT, note_hdf5, this);
    set_openmp_threads(3);
    if (std::setlocale(LC_ALL, "C.UTF-8") != nullptr) locale_ = "C.UTF-8";
  }
  ~Settings() { MPI_Errhandler_free(&handler_); }
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;
  void check() {
    int level = -1;
    MPI_Query_thread(&level);
    require(level == level_, "MPI has another thread level");
    MPI_Errhandler now = MPI_ERRHANDLER_NULL;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &now);
    require(now == handler_, "MPI_COMM_WORLD has another error handler");
    MPI_Errhandler_free(&now);
    const int before = errors_of_world;
    int data = 0;
    MPI_Send(&data, 1, MPI_INT, 1'000'000, 0, MPI_COMM_WORLD);
    require(errors_of_world == before + 1, "a wrong send was not noticed by the program");
    struct sigaction action {};
    ::sigaction(SIGINT, nullptr, &action);
    require(action.sa_handler == note_signal, "SIGINT has another handler");
    ::sigaction(SIGTERM, nullptr, &action);
    require(action.sa_handler == SIG_DFL, "SIGTERM has a handler");
    H5E_auto2_t print = nullptr;
    void* data_of_print = nullptr;
    H5Eget_auto2(H5E_DEFAULT, &print, &data_of_print);
    require(print == note_hdf5 && data_of_print == this, "HDF5 prints errors in another way");
    require(openmp_threads() == 0 || openmp_threads() == 3, "OpenMP has another number of threads");
    require(locale_.empty() || std::setlocale(LC_ALL, nullptr) == locale_, "the locale is another");
  }

 private:
  int level_ = -1;
  MPI_Errhandler handler_ = MPI_ERRHANDLER_NULL;
  std::string locale_;
};

}  // namespace lockstep
