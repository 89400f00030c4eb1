# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# lockstep_program_test(NAME SCRIPT file.py TIMEOUT seconds [LABELS ...] [ENVIRONMENT name=value ...]): a Python script,
#   standard library only, that drives the real program with tests/support/lockstep_run.py. Exit code 77 is "skipped".
#
#   Such a test counts as one processor whatever its number of ranks: it starts short runs one after the other, and waits for
#   starts, ends and time limits in between. Tests with a high time limit start first, so that none of them ends alone.
find_package(Python3 COMPONENTS Interpreter REQUIRED)

function(lockstep_program_test name)
  cmake_parse_arguments(T "" "SCRIPT;TIMEOUT" "LABELS;ENVIRONMENT" ${ARGN})
  list(JOIN LOCKSTEP_MPIRUN " " mpirun)
  if(LOCKSTEP_SANITIZE)
    math(EXPR T_TIMEOUT "5 * ${T_TIMEOUT}")
  endif()
  add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/${T_SCRIPT})
  set_tests_properties(${name} PROPERTIES
    LABELS "${T_LABELS}" TIMEOUT ${T_TIMEOUT} COST ${T_TIMEOUT} SKIP_RETURN_CODE 77
    ENVIRONMENT "${LOCKSTEP_MPI_TEST_ENVIRONMENT};PYTHONPATH=${PROJECT_SOURCE_DIR}/tests/support;LOCKSTEP_PROGRAM=$<TARGET_FILE:lockstep_program>;LOCKSTEP_MPIRUN=${mpirun};LOCKSTEP_SOURCE=${PROJECT_SOURCE_DIR};LOCKSTEP_EXTRA_DATA=${LOCKSTEP_EXTRA_DATA};${T_ENVIRONMENT}")
endfunction()
