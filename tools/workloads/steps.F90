! SPDX-License-Identifier: GPL-2.0-or-later
! The same fixed sequence of MPI calls as steps.c, call for call. Compiled three times, once with each
! binding: BINDING_H (include 'mpif.h'), BINDING_USE (use mpi), BINDING_F08 (use mpi_f08).
!
! gfortran 12 gives a call of mpi_f08 that needs no temporaries no line of its own: hence the conditions that
! are always true.
!
!   steps [--seconds S] [--log DIR] [--rounds N]     S: sleep before the first call
#if defined(BINDING_F08)
#define REQUEST type(MPI_Request)
#else
#define REQUEST integer
#endif
module work
  implicit none
  double precision, volatile :: sink
contains
  subroutine compute(units)
    integer, intent(in) :: units
    integer :: i
    double precision :: x
    x = 1.0d0
    do i = 1, units * 20000
      x = x * 1.0000001d0 + 1d-9
    end do
    sink = x
  end subroutine compute
end module work

program steps
#if defined(BINDING_F08)
  use mpi_f08
#elif defined(BINDING_USE)
  use mpi
#endif
  use, intrinsic :: iso_c_binding
  use work
  implicit none
#if defined(BINDING_H)
  include 'mpif.h'
#endif
  interface
    function c_getpid() bind(c, name='getpid')
      import :: c_int
      integer(c_int) :: c_getpid
    end function c_getpid
    function c_usleep(us) bind(c, name='usleep')
      import :: c_int
      integer(c_int), value :: us
      integer(c_int) :: c_usleep
    end function c_usleep
  end interface
  integer, parameter :: large = 16384
  double precision, save, asynchronous :: a(large), b(large), c(large)
  integer, save :: ints(64)
  integer :: rank, nranks, right, left, rounds, round, inner, ierr, i
  double precision :: seconds
  character(len=400) :: word, value, log
  logical :: there
  REQUEST :: req(4), persistent(2)

  rounds = 40
  seconds = 0
  log = ''
  do i = 1, command_argument_count() - 1, 2
    call get_command_argument(i, word)
    call get_command_argument(i + 1, value)
    if (word == '--seconds') read (value, *) seconds
    if (word == '--log') log = value
    if (word == '--rounds') read (value, *) rounds
  end do
  a = 0
  ints = 0
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks, ierr)
  right = mod(rank + 1, nranks)
  left = mod(rank + nranks - 1, nranks)
  if (log /= '') then
    write (value, '(a,a,i0)') trim(log), '/truth.', rank
    open (unit=10, file=trim(value), action='write')
    write (10, '(a,i0,a,i0)') '# rank ', rank, ' pid ', c_getpid()
    close (10)
  end if
  ! time for an observer, as wait_for_observer() of common.h
  call get_environment_variable('VAPRO_GO', value)
  if (value == '') ierr = c_usleep(int(seconds * 1d6, c_int))
  do i = 1, merge(0, 12000, value == '')
    inquire (file=trim(value), exist=there)
    if (there) exit
    ierr = c_usleep(10000_c_int)
  end do

  call MPI_Barrier(MPI_COMM_WORLD, ierr) ! site 1
  call MPI_Send_init(a, 512, MPI_DOUBLE_PRECISION, right, 5, MPI_COMM_WORLD, persistent(1), ierr) ! site 2
  call MPI_Recv_init(b, 512, MPI_DOUBLE_PRECISION, left, 5, MPI_COMM_WORLD, persistent(2), ierr) ! site 3
  do round = 0, rounds - 1
    call compute(1)
    if (mod(rank, 2) == 0) then
      call MPI_Send(a, 128, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, ierr) ! site 4
      call MPI_Recv(b, 128, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr) ! site 5
    else
      call MPI_Recv(b, 128, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr) ! site 6
      call MPI_Send(a, 128, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, ierr) ! site 7
    end if
    call compute(2)
    call MPI_Allreduce(a, c, 8, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr) ! site 8
    do inner = 1, 3
      call compute(1)
      call MPI_Bcast(ints, 64, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr) ! site 9
    end do
    call compute(1)
    call MPI_Irecv(b, 1024, MPI_DOUBLE_PRECISION, left, 2, MPI_COMM_WORLD, req(1), ierr) ! site 10
    call MPI_Irecv(b(4097), 32, MPI_DOUBLE_PRECISION, left, 3, MPI_COMM_WORLD, req(2), ierr) ! site 11
    call MPI_Isend(a, 1024, MPI_DOUBLE_PRECISION, right, 2, MPI_COMM_WORLD, req(3), ierr) ! site 12
    call MPI_Isend(a(4097), 32, MPI_DOUBLE_PRECISION, right, 3, MPI_COMM_WORLD, req(4), ierr) ! site 13
    call compute(2)
    call MPI_Waitall(4, req, MPI_STATUSES_IGNORE, ierr) ! site 14
    call MPI_Irecv(b, large, MPI_DOUBLE_PRECISION, left, 4, MPI_COMM_WORLD, req(1), ierr) ! site 15
    call MPI_Isend(a, large, MPI_DOUBLE_PRECISION, right, 4, MPI_COMM_WORLD, req(2), ierr) ! site 16
    if (nranks > 0) call MPI_Wait(req(1), MPI_STATUS_IGNORE, ierr) ! site 17
    if (nranks > 0) call MPI_Wait(req(2), MPI_STATUS_IGNORE, ierr) ! site 18
    call compute(1)
    call MPI_Startall(2, persistent, ierr) ! site 19
    call MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE, ierr) ! site 20
    call compute(1)
    call MPI_Reduce(a, c, 1, MPI_DOUBLE_PRECISION, MPI_MAX, 0, MPI_COMM_WORLD, ierr) ! site 21
    call MPI_Allgather(a, 4, MPI_DOUBLE_PRECISION, c, 4, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, ierr) ! site 22
    if (mod(round, 4) == 0) then
      call MPI_Barrier(MPI_COMM_WORLD, ierr) ! site 23
    end if
  end do
  call MPI_Request_free(persistent(1), ierr)
  call MPI_Request_free(persistent(2), ierr)
  if (nranks > 0) call MPI_Finalize(ierr) ! site 24
  if (rank == 0) write (*, '(a,i0,a)') '{"done":true,"rounds":', rounds, '}'
end program steps
