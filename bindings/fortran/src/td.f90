!> td decomposes sparse and dense tensors: fits a Kruskal tensor with CP-ALS. Everything that a program needs:
!>
!>     use td
!>     type(td_tensor) :: x
!>     type(td_ktensor) :: model
!>     call x%create(field)                                ! an ordinary array, or values and indices
!>     call td_cpals(x, 8, model, tol=1e-6_real64, max_iters=100)
!>     a = model%factor(1)                                 ! an ordinary matrix
!>
!> Modes and indices count from 1. Without `stat` an error stops the program with its text; with it, stat is 0 or above
!> when all is well and errmsg has the text when it is not. Input is copied. Variables clean up after themselves, except
!> in a main program, where Fortran leaves that to destroy. Functions, which have no stat, stop on an error.
!> The details of each call (errors, ranges, formats) are those of td.h.
module td
  use td_c_context, only: TD_OK, TD_STOPPED, TD_ERR_ARGUMENT, TD_ERR_SHAPE, TD_ERR_INDEX, TD_ERR_TYPE, TD_ERR_HANDLE, &
    TD_ERR_OPTION_UNKNOWN, TD_ERR_OPTION_RANGE, TD_ERR_UNSUPPORTED, TD_ERR_BACKEND_UNAVAILABLE, TD_ERR_HOST_MEMORY, &
    TD_ERR_DEVICE_MEMORY, TD_ERR_DEVICE, TD_ERR_NUMERICAL, TD_ERR_IO, TD_ERR_COMMUNICATION, TD_ERR_INTERNAL
  use td_contexts, only: td_context, td_log, td_version, td_has_feature, td_status_name
  use td_ktensors, only: td_ktensor
  use td_objects, only: td_last_error => last_error
  use td_option_sets, only: td_options, td_option_count, td_option_describe
  use td_plans, only: td_plan
  use td_reports, only: td_report
  use td_solvers, only: td_cpals, td_mttkrp, td_progress
  use td_tensors, only: td_tensor
  implicit none
  public
end module td
