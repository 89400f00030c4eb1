# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# lockstep_program_test(NAME SCRIPT file.py TIMEOUT seconds PROCESSORS n [SERIAL] [LABELS ...] [ENVIRONMENT name=value ...]): a Python script, standard
#   library only, that drives the real program with tests/support/lockstep_run.py. SERIAL: it starts many more ranks than
#   there are cores, or waits for time limits, and runs alone. Exit code 77 is "skipped".
find_package(Python3 COMPONENTS Interpreter REQUIRED)

function(lockstep_program_test name)
  cmake_parse_arguments(T "SERIAL" "SCRIPT;TIMEOUT;PROCESSORS" "LABELS;ENVIRONMENT" ${ARGN})
  list(JOIN LOCKSTEP_MPIRUN " " mpirun)
  add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/${T_SCRIPT})
  set_tests_properties(${name} PROPERTIES
    LABELS "${T_LABELS}" TIMEOUT ${T_TIMEOUT} PROCESSORS ${T_PROCESSORS} RUN_SERIAL ${T_SERIAL} SKIP_RETURN_CODE 77
    ENVIRONMENT "${LOCKSTEP_MPI_TEST_ENVIRONMENT};PYTHONPATH=${PROJECT_SOURCE_DIR}/tests/support;LOCKSTEP_PROGRAM=$<TARGET_FILE:lockstep_program>;LOCKSTEP_MPIRUN=${mpirun};LOCKSTEP_SOURCE=${PROJECT_SOURCE_DIR};LOCKSTEP_EXTRA_DATA=${LOCKSTEP_EXTRA_DATA};${T_ENVIRONMENT}")
endfunction()
