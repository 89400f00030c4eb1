! SPDX-FileCopyrightText: The Lockstep authors
! SPDX-License-Identifier: Apache-2.0
!
! Predicts with a trained model in Fortran (docs/predictor.md):
!
!   gfortran lockstep_predictor.f90 main.f90 -llockstep_c -o predict_fortran
!   predict_fortran RUN < numbers        one sample per line; prints its outputs
program predict_fortran
  use, intrinsic :: iso_c_binding, only: c_double
  use, intrinsic :: iso_fortran_env, only: error_unit
  use lockstep_predictor
  implicit none
  type(predictor) :: net
  real(c_double), allocatable :: state(:), flux(:)
  character(len=4096) :: path
  logical :: failed
  integer :: status

  call get_command_argument(1, path)
  call net%open(path, failed)
  if (failed) call stop_with_message()
  allocate (state(net%input_size()), flux(net%output_size()))
  do
    read (*, *, iostat=status) state
    if (status /= 0) exit
    call net%predict(state, flux, 1, failed)
    if (failed) call stop_with_message()
    print '(*(es16.8e2, 1x))', flux
  end do
  call net%close()

contains

  subroutine stop_with_message()
    write (error_unit, '(a)') net%message()
    stop 1
  end subroutine

end program
