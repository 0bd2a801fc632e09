"""td.h as it is: its codes, callbacks and functions, declared once; scripts/check_bindings compares them with td.h."""
from __future__ import annotations

import ctypes
from typing import Any

TD_ABI_VERSION = 0
TD_OK = 0
TD_STOPPED = 1
TD_ERR_ARGUMENT = -1
TD_ERR_SHAPE = -2
TD_ERR_INDEX = -3
TD_ERR_TYPE = -4
TD_ERR_HANDLE = -5
TD_ERR_OPTION_UNKNOWN = -10
TD_ERR_OPTION_RANGE = -11
TD_ERR_UNSUPPORTED = -20
TD_ERR_BACKEND_UNAVAILABLE = -21
TD_ERR_HOST_MEMORY = -30
TD_ERR_DEVICE_MEMORY = -31
TD_ERR_DEVICE = -32
TD_ERR_NUMERICAL = -40
TD_ERR_IO = -50
TD_ERR_COMMUNICATION = -60
TD_ERR_INTERNAL = -99
TD_F32 = 1
TD_F64 = 2
TD_I32 = 11
TD_I64 = 12
TD_HOST = 0
TD_DEVICE = 1

i32, i64, f64 = ctypes.c_int32, ctypes.c_int64, ctypes.c_double
text, ptr = ctypes.c_char_p, ctypes.c_void_p
i32_p, i64_p, f64_p, ptr_p = (ctypes.POINTER(i32), ctypes.POINTER(i64), ctypes.POINTER(f64), ctypes.POINTER(ptr))
log_fn = ctypes.CFUNCTYPE(None, i32, text, ptr)
progress_fn = ctypes.CFUNCTYPE(i32, ptr, ptr)

# name: (result, [arguments])
SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "td_status_name": (text, [i32]),
    "td_last_error": (i64, [ptr, i64]),
    "td_version": (i32, []),
    "td_abi_version": (i32, []),
    "td_has_feature": (i32, [text]),
    "td_options_create": (i32, [ptr_p]),
    "td_options_copy": (i32, [ptr, ptr_p]),
    "td_options_destroy": (None, [ptr]),
    "td_options_set_i64": (i32, [ptr, text, i64]),
    "td_options_set_f64": (i32, [ptr, text, f64]),
    "td_options_set_str": (i32, [ptr, text, text]),
    "td_options_get_i64": (i32, [ptr, text, i64_p]),
    "td_options_get_f64": (i32, [ptr, text, f64_p]),
    "td_options_get_str": (i32, [ptr, text, ptr, i64, i64_p]),
    "td_option_count": (i64, []),
    "td_option_describe": (i32, [i64, ptr, i64, i64_p]),
    "td_context_create": (i32, [text, ptr, ptr_p]),
    "td_communicator_create": (i32, [i32, i32, ptr, ptr, ptr, ptr, ptr, ptr, ptr_p]),
    "td_communicator_destroy": (None, [ptr]),
    "td_context_create_distributed": (i32, [text, ptr, ptr, ptr_p]),
    "td_context_share": (i32, [ptr, ptr_p]),
    "td_context_destroy": (None, [ptr]),
    "td_context_set_log": (i32, [ptr, log_fn, ptr]),
    "td_context_set_stream": (i32, [ptr, i32, ptr]),
    "td_context_describe": (i32, [ptr, ptr, i64, i64_p]),
    "td_tensor_create": (i32, [ptr, i32, i64_p, i64, i32, ptr_p, i32, i32, ptr, i32, ptr, ptr_p]),
    "td_tensor_create_dense": (i32, [ptr, i32, i64_p, i64_p, i32, ptr, i32, ptr, ptr_p]),
    "td_tensor_create_dense_block": (i32, [ptr, i32, i64_p, i64_p, i64_p, i64_p, i32, ptr, i32, ptr, ptr_p]),
    "td_tensor_share": (i32, [ptr, ptr_p]),
    "td_tensor_destroy": (None, [ptr]),
    "td_tensor_order": (i32, [ptr, i32_p]),
    "td_tensor_dims": (i32, [ptr, i64_p]),
    "td_tensor_nnz": (i32, [ptr, i64_p]),
    "td_tensor_type": (i32, [ptr, i32_p]),
    "td_tensor_norm": (i32, [ptr, f64_p]),
    "td_tensor_get_i64": (i32, [ptr, text, i64_p]),
    "td_tensor_get_f64": (i32, [ptr, text, f64_p]),
    "td_tensor_get_str": (i32, [ptr, text, ptr, i64, i64_p]),
    "td_tensor_slice_counts": (i32, [ptr, i32, i64_p]),
    "td_tensor_get_entries": (i32, [ptr, i32, ptr_p, i32, i32, ptr]),
    "td_tensor_get_dense": (i32, [ptr, i64_p, i32, ptr]),
    "td_tensor_describe": (i32, [ptr, ptr, i64, i64_p]),
    "td_ktensor_create": (i32, [ptr, i32, i64_p, i64, i32, ptr_p]),
    "td_ktensor_copy": (i32, [ptr, ptr_p]),
    "td_ktensor_destroy": (None, [ptr]),
    "td_ktensor_shape": (i32, [ptr, i32_p, i64_p, i64_p, i32_p]),
    "td_ktensor_set_factor": (i32, [ptr, i32, ptr, i64, i32]),
    "td_ktensor_get_factor": (i32, [ptr, i32, ptr, i64, i32]),
    "td_ktensor_set_weights": (i32, [ptr, f64_p]),
    "td_ktensor_get_weights": (i32, [ptr, f64_p]),
    "td_ktensor_normalize": (i32, [ptr]),
    "td_ktensor_arrange": (i32, [ptr]),
    "td_ktensor_fixsigns": (i32, [ptr]),
    "td_ktensor_norm": (i32, [ptr, f64_p]),
    "td_ktensor_dot": (i32, [ptr, ptr, f64_p]),
    "td_ktensor_dot_tensor": (i32, [ptr, ptr, ptr, f64_p]),
    "td_ktensor_fit": (i32, [ptr, ptr, ptr, f64_p, f64_p, f64_p, f64_p]),
    "td_ktensor_values_at": (i32, [ptr, i64, i32, ptr_p, i32, f64_p]),
    "td_ktensor_full": (i32, [ptr, i64_p, i32, ptr]),
    "td_ktensor_score": (i32, [ptr, ptr, i32, f64_p, i64_p]),
    "td_ktensor_local_rows": (i32, [ptr, i32, i64_p, i64_p]),
    "td_ktensor_get_local_factor": (i32, [ptr, i32, ptr, i64, i32]),
    "td_ktensor_gather": (i32, [ptr, ptr_p]),
    "td_tensor_set_mode_name": (i32, [ptr, i32, text]),
    "td_tensor_get_mode_name": (i32, [ptr, i32, ptr, i64, i64_p]),
    "td_tensor_set_labels": (i32, [ptr, i32, ptr, i64]),
    "td_tensor_get_label": (i32, [ptr, i32, i64, ptr, i64, i64_p]),
    "td_tensor_get_labels": (i32, [ptr, i32, ptr, i64, i64_p]),
    "td_ktensor_set_mode_name": (i32, [ptr, i32, text]),
    "td_ktensor_get_mode_name": (i32, [ptr, i32, ptr, i64, i64_p]),
    "td_ktensor_set_labels": (i32, [ptr, i32, ptr, i64]),
    "td_ktensor_get_label": (i32, [ptr, i32, i64, ptr, i64, i64_p]),
    "td_ktensor_get_labels": (i32, [ptr, i32, ptr, i64, i64_p]),
    "td_ktensor_get_leading": (i32, [ptr, i32, i64, i64, i64_p, f64_p, i64_p]),
    "td_mttkrp": (i32, [ptr, ptr, i32, i64, ptr_p, i64_p, ptr, i64, i32]),
    "td_mttkrp_ktensor": (i32, [ptr, ptr, i32, ptr, ptr, i64, i32]),
    "td_cpals": (i32, [ptr, ptr, i64, ptr, ptr, progress_fn, ptr, ptr_p, ptr_p]),
    "td_report_copy": (i32, [ptr, ptr_p]),
    "td_report_destroy": (None, [ptr]),
    "td_report_get_i64": (i32, [ptr, text, i64_p]),
    "td_report_get_f64": (i32, [ptr, text, f64_p]),
    "td_report_get_str": (i32, [ptr, text, ptr, i64, i64_p]),
    "td_report_get_series": (i32, [ptr, text, f64_p, i64, i64_p]),
    "td_report_write": (i32, [ptr, ptr, ptr, ptr, ptr, text]),
    "td_plan_create": (i32, [ptr, i32, i64_p, i64, i32, i64, ptr, ptr_p]),
    "td_plan_create_dense": (i32, [ptr, i32, i64_p, i32, i64, ptr, ptr_p]),
    "td_plan_create_for_tensor": (i32, [ptr, ptr, i64, ptr, ptr_p]),
    "td_plan_read": (i32, [ptr, text, i64, ptr, ptr_p]),
    "td_plan_share": (i32, [ptr, ptr_p]),
    "td_plan_destroy": (None, [ptr]),
    "td_plan_get_i64": (i32, [ptr, text, i64_p]),
    "td_plan_get_f64": (i32, [ptr, text, f64_p]),
    "td_plan_get_str": (i32, [ptr, text, ptr, i64, i64_p]),
    "td_plan_get_series": (i32, [ptr, text, f64_p, i64, i64_p]),
    "td_plan_describe": (i32, [ptr, ptr, i64, i64_p]),
    "td_tensor_read": (i32, [ptr, text, ptr, ptr_p]),
    "td_tensor_write": (i32, [ptr, text, ptr]),
    "td_ktensor_read": (i32, [ptr, text, ptr_p]),
    "td_ktensor_write": (i32, [ptr, text, ptr]),
}
