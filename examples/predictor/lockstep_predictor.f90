! SPDX-FileCopyrightText: The Lockstep authors
! SPDX-License-Identifier: Apache-2.0
!
! A trained model in Fortran, over the C interface (docs/predictor.md):
!
!   type(predictor) :: net
!   call net%open("runs/closure", failed)              ! failed: then net%message() says why
!   call net%predict(state, flux, samples, failed)      ! real(c_double) or real(c_float), one input and one output
!   call net%close()
!
! A sample is a column: state(net%input_size(), samples). Of a picture, the channels are the first axis: the shape that
! Lockstep names (height, width, channels) is reversed. An object is for one thread at a time; clone() gives another thread
! an object of its own, which shares the weights.
module lockstep_predictor
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: predictor

  type :: predictor
    private
    type(c_ptr) :: model = c_null_ptr
  contains
    procedure :: open => open_model
    procedure :: close => close_model
    procedure :: clone => clone_model
    procedure :: input_size
    procedure :: output_size
    procedure, nopass :: message
    procedure, private :: predict_double, predict_float
    generic :: predict => predict_double, predict_float
  end type

  interface
    function c_open(path, checkpoint) bind(c, name="lockstep_open") result(model)
      import :: c_ptr, c_char
      character(kind=c_char), intent(in) :: path(*)
      type(c_ptr), value :: checkpoint
      type(c_ptr) :: model
    end function
    function c_clone(model) bind(c, name="lockstep_clone") result(other)
      import :: c_ptr
      type(c_ptr), value :: model
      type(c_ptr) :: other
    end function
    subroutine c_close(model) bind(c, name="lockstep_close")
      import :: c_ptr
      type(c_ptr), value :: model
    end subroutine
    function c_input_size(model, number) bind(c, name="lockstep_input_size") result(values)
      import :: c_ptr, c_int, c_int64_t
      type(c_ptr), value :: model
      integer(c_int), value :: number
      integer(c_int64_t) :: values
    end function
    function c_output_size(model, number) bind(c, name="lockstep_output_size") result(values)
      import :: c_ptr, c_int, c_int64_t
      type(c_ptr), value :: model
      integer(c_int), value :: number
      integer(c_int64_t) :: values
    end function
    function c_predict(model, inputs, outputs, samples) bind(c, name="lockstep_predict") result(code)
      import :: c_ptr, c_int, c_int64_t
      type(c_ptr), value :: model
      type(c_ptr), intent(in) :: inputs(*), outputs(*)
      integer(c_int64_t), value :: samples
      integer(c_int) :: code
    end function
    function c_predict_double(model, inputs, outputs, samples) bind(c, name="lockstep_predict_double") result(code)
      import :: c_ptr, c_int, c_int64_t
      type(c_ptr), value :: model
      type(c_ptr), intent(in) :: inputs(*), outputs(*)
      integer(c_int64_t), value :: samples
      integer(c_int) :: code
    end function
    function c_last_error() bind(c, name="lockstep_last_error") result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function
    function c_strlen(text) bind(c, name="strlen") result(length)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function
  end interface

contains

  subroutine open_model(self, path, failed)
    class(predictor), intent(inout) :: self
    character(len=*), intent(in) :: path
    logical, intent(out) :: failed
    character(kind=c_char) :: name(len_trim(path) + 1)
    integer :: i
    do i = 1, len_trim(path)
      name(i) = path(i:i)
    end do
    name(size(name)) = c_null_char
    call self%close()
    self%model = c_open(name, c_null_ptr)
    failed = .not. c_associated(self%model)
  end subroutine

  subroutine close_model(self)
    class(predictor), intent(inout) :: self
    call c_close(self%model)
    self%model = c_null_ptr
  end subroutine

  subroutine clone_model(self, other, failed)
    class(predictor), intent(in) :: self
    type(predictor), intent(inout) :: other
    logical, intent(out) :: failed
    call other%close()
    other%model = c_clone(self%model)
    failed = .not. c_associated(other%model)
  end subroutine

  !> The values of one sample of the first input; -1 of a model that is not open.
  integer function input_size(self)
    class(predictor), intent(in) :: self
    input_size = int(c_input_size(self%model, 0_c_int))
  end function

  !> The values of one sample of the first output.
  integer function output_size(self)
    class(predictor), intent(in) :: self
    output_size = int(c_output_size(self%model, 0_c_int))
  end function

  subroutine predict_double(self, x, y, samples, failed)
    class(predictor), intent(in) :: self
    real(c_double), intent(in), target :: x(*)
    real(c_double), intent(inout), target :: y(*)
    integer, intent(in) :: samples
    logical, intent(out) :: failed
    failed = c_predict_double(self%model, [c_loc(x(1))], [c_loc(y(1))], int(samples, c_int64_t)) /= 0
  end subroutine

  subroutine predict_float(self, x, y, samples, failed)
    class(predictor), intent(in) :: self
    real(c_float), intent(in), target :: x(*)
    real(c_float), intent(inout), target :: y(*)
    integer, intent(in) :: samples
    logical, intent(out) :: failed
    failed = c_predict(self%model, [c_loc(x(1))], [c_loc(y(1))], int(samples, c_int64_t)) /= 0
  end subroutine

  !> What the last call that failed on this thread says.
  function message() result(text)
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: from(:)
    type(c_ptr) :: address
    integer :: i
    address = c_last_error()
    call c_f_pointer(address, from, [c_strlen(address)])
    allocate (character(len=size(from)) :: text)
    do i = 1, size(from)
      text(i:i) = from(i)
    end do
  end function

end module
