! SPDX-License-Identifier: GPL-2.0-or-later
! Calls in a module's procedure, an external one, a contained one and the program, for test_source.c.
module field
  implicit none
contains
  subroutine halo(n)
    integer, intent(inout) :: n
    call mark(n)
  end subroutine halo
end module field

subroutine mark(n)
  integer, intent(inout) :: n
  n = n + 1
end subroutine mark

subroutine solve(n)
  use field
  implicit none
  integer, intent(inout) :: n
  call halo(n)
  call inner()
contains
  subroutine inner()
    call mark(n)
  end subroutine inner
end subroutine solve

program steps
  implicit none
  integer :: n
  n = 1
  call solve(n)
  call mark(n)
  if (n < 0) stop 1
end program steps
