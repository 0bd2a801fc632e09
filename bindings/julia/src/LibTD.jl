"""
td.h as it is: each function under its own name, with its own arguments. Compared with td.h by scripts/check_bindings.
"""
module LibTD

using Libdl

const TD_ABI_VERSION = Int32(0)

const TD_OK = Int32(0)
const TD_STOPPED = Int32(1)
const TD_ERR_ARGUMENT = Int32(-1)
const TD_ERR_SHAPE = Int32(-2)
const TD_ERR_INDEX = Int32(-3)
const TD_ERR_TYPE = Int32(-4)
const TD_ERR_HANDLE = Int32(-5)
const TD_ERR_OPTION_UNKNOWN = Int32(-10)
const TD_ERR_OPTION_RANGE = Int32(-11)
const TD_ERR_UNSUPPORTED = Int32(-20)
const TD_ERR_BACKEND_UNAVAILABLE = Int32(-21)
const TD_ERR_HOST_MEMORY = Int32(-30)
const TD_ERR_DEVICE_MEMORY = Int32(-31)
const TD_ERR_DEVICE = Int32(-32)
const TD_ERR_NUMERICAL = Int32(-40)
const TD_ERR_IO = Int32(-50)
const TD_ERR_COMMUNICATION = Int32(-60)
const TD_ERR_INTERNAL = Int32(-99)
const TD_F32 = Int32(1)
const TD_F64 = Int32(2)
const TD_I32 = Int32(11)
const TD_I64 = Int32(12)
const TD_HOST = Int32(0)
const TD_DEVICE = Int32(1)

# Addresses are looked up when the library is loaded, since where it lies is known only then.
const addresses = Pair{Symbol,Base.RefValue{Ptr{Cvoid}}}[]
const Callback = Ptr{Cvoid}

# @td name(argument::Type, ...)::Result defines a function that calls the library's.
macro td(declaration)
    call, result = declaration.args
    name, arguments = call.args[1], call.args[2:end]
    names = [esc(a.args[1]) for a in arguments]
    types = [esc(a.args[2]) for a in arguments]
    address = esc(Symbol(name, :_address))
    return quote
        const $address = Ref{Ptr{Cvoid}}(C_NULL)
        push!(addresses, $(QuoteNode(name)) => $address)
        $(esc(name))($(names...)) = ccall($address[], $(esc(result)), ($(types...),), $(names...))
    end
end

@td td_status_name(status::Int32)::Cstring
@td td_last_error(buf::Ptr{UInt8}, cap::Int64)::Int64
@td td_version()::Int32
@td td_abi_version()::Int32
@td td_has_feature(name::Cstring)::Int32
@td td_options_create(out::Ptr{Ptr{Cvoid}})::Int32
@td td_options_copy(options::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})::Int32
@td td_options_destroy(options::Ptr{Cvoid})::Cvoid
@td td_options_set_i64(options::Ptr{Cvoid}, key::Cstring, value::Int64)::Int32
@td td_options_set_f64(options::Ptr{Cvoid}, key::Cstring, value::Float64)::Int32
@td td_options_set_str(options::Ptr{Cvoid}, key::Cstring, value::Cstring)::Int32
@td td_options_get_i64(options::Ptr{Cvoid}, key::Cstring, value::Ptr{Int64})::Int32
@td td_options_get_f64(options::Ptr{Cvoid}, key::Cstring, value::Ptr{Float64})::Int32
@td td_options_get_str(options::Ptr{Cvoid}, key::Cstring, buf::Ptr{UInt8}, cap::Int64,
                       needed::Ptr{Int64})::Int32
@td td_option_count()::Int64
@td td_option_describe(i::Int64, buf::Ptr{UInt8}, cap::Int64, needed::Ptr{Int64})::Int32
@td td_context_create(devices::Cstring, options::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})::Int32
@td td_communicator_create(rank::Int32, size::Int32, all_reduce::Callback, all_to_all_v::Callback, broadcast::Callback,
                           abort::Callback, release::Callback, user::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})::Int32
@td td_communicator_destroy(communicator::Ptr{Cvoid})::Cvoid
@td td_context_create_distributed(devices::Cstring, options::Ptr{Cvoid}, communicator::Ptr{Cvoid},
                                  out::Ptr{Ptr{Cvoid}})::Int32
@td td_context_share(context::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})::Int32
@td td_context_destroy(context::Ptr{Cvoid})::Cvoid
@td td_context_set_log(context::Ptr{Cvoid}, log::Callback, user::Ptr{Cvoid})::Int32
@td td_context_set_stream(context::Ptr{Cvoid}, slot::Int32, stream::Ptr{Cvoid})::Int32
@td td_context_describe(context::Ptr{Cvoid}, buf::Ptr{UInt8}, cap::Int64, needed::Ptr{Int64})::Int32
@td td_tensor_create(context::Ptr{Cvoid}, order::Int32, dims::Ptr{Int64}, nnz::Int64, index_type::Int32,
                     indices::Ptr{Ptr{Cvoid}}, index_base::Int32, value_type::Int32, values::Ptr{Cvoid},
                     space::Int32, options::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})::Int32
@td td_tensor_create_dense(context::Ptr{Cvoid}, order::Int32, dims::Ptr{Int64}, strides::Ptr{Int64},
                           value_type::Int32, values::Ptr{Cvoid}, space::Int32, options::Ptr{Cvoid},
                           out::Ptr{Ptr{Cvoid}})::Int32
@td td_tensor_create_dense_block(context::Ptr{Cvoid}, order::Int32, dims::Ptr{Int64}, offset::Ptr{Int64},
                                 block_dims::Ptr{Int64}, strides::Ptr{Int64}, value_type::Int32, values::Ptr{Cvoid},
                                 space::Int32, options::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})::Int32
@td td_tensor_share(tensor::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})::Int32
@td td_tensor_destroy(tensor::Ptr{Cvoid})::Cvoid
@td td_tensor_order(tensor::Ptr{Cvoid}, order::Ptr{Int32})::Int32
@td td_tensor_dims(tensor::Ptr{Cvoid}, dims::Ptr{Int64})::Int32
@td td_tensor_nnz(tensor::Ptr{Cvoid}, nnz::Ptr{Int64})::Int32
@td td_tensor_type(tensor::Ptr{Cvoid}, value_type::Ptr{Int32})::Int32
@td td_tensor_norm(tensor::Ptr{Cvoid}, norm::Ptr{Float64})::Int32
@td td_tensor_get_i64(tensor::Ptr{Cvoid}, key::Cstring, value::Ptr{Int64})::Int32
@td td_tensor_get_f64(tensor::Ptr{Cvoid}, key::Cstring, value::Ptr{Float64})::Int32
@td td_tensor_get_str(tensor::Ptr{Cvoid}, key::Cstring, buf::Ptr{UInt8}, cap::Int64, needed::Ptr{Int64})::Int32
@td td_tensor_slice_counts(tensor::Ptr{Cvoid}, mode::Int32, counts::Ptr{Int64})::Int32
@td td_tensor_get_entries(tensor::Ptr{Cvoid}, index_type::Int32, indices::Ptr{Ptr{Cvoid}}, index_base::Int32,
                          value_type::Int32, values::Ptr{Cvoid})::Int32
@td td_tensor_get_dense(tensor::Ptr{Cvoid}, strides::Ptr{Int64}, value_type::Int32, values::Ptr{Cvoid})::Int32
@td td_tensor_describe(tensor::Ptr{Cvoid}, buf::Ptr{UInt8}, cap::Int64, needed::Ptr{Int64})::Int32
@td td_ktensor_create(context::Ptr{Cvoid}, order::Int32, dims::Ptr{Int64}, rank::Int64, type::Int32,
                      out::Ptr{Ptr{Cvoid}})::Int32
@td td_ktensor_copy(ktensor::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})::Int32
@td td_ktensor_destroy(ktensor::Ptr{Cvoid})::Cvoid
@td td_ktensor_shape(ktensor::Ptr{Cvoid}, order::Ptr{Int32}, dims::Ptr{Int64}, rank::Ptr{Int64},
                     type::Ptr{Int32})::Int32
@td td_ktensor_set_factor(ktensor::Ptr{Cvoid}, mode::Int32, a::Ptr{Cvoid}, ld::Int64, space::Int32)::Int32
@td td_ktensor_get_factor(ktensor::Ptr{Cvoid}, mode::Int32, a::Ptr{Cvoid}, ld::Int64, space::Int32)::Int32
@td td_ktensor_set_weights(ktensor::Ptr{Cvoid}, weights::Ptr{Float64})::Int32
@td td_ktensor_get_weights(ktensor::Ptr{Cvoid}, weights::Ptr{Float64})::Int32
@td td_ktensor_normalize(ktensor::Ptr{Cvoid})::Int32
@td td_ktensor_arrange(ktensor::Ptr{Cvoid})::Int32
@td td_ktensor_fixsigns(ktensor::Ptr{Cvoid})::Int32
@td td_ktensor_norm(ktensor::Ptr{Cvoid}, norm::Ptr{Float64})::Int32
@td td_ktensor_dot(a::Ptr{Cvoid}, b::Ptr{Cvoid}, dot::Ptr{Float64})::Int32
@td td_ktensor_dot_tensor(context::Ptr{Cvoid}, ktensor::Ptr{Cvoid}, tensor::Ptr{Cvoid},
                          dot::Ptr{Float64})::Int32
@td td_ktensor_fit(context::Ptr{Cvoid}, ktensor::Ptr{Cvoid}, tensor::Ptr{Cvoid}, fit::Ptr{Float64},
                   explained::Ptr{Float64}, relative::Ptr{Float64}, residual::Ptr{Float64})::Int32
@td td_ktensor_values_at(ktensor::Ptr{Cvoid}, n::Int64, index_type::Int32, indices::Ptr{Ptr{Cvoid}},
                         index_base::Int32, values::Ptr{Float64})::Int32
@td td_ktensor_full(ktensor::Ptr{Cvoid}, strides::Ptr{Int64}, value_type::Int32, values::Ptr{Cvoid})::Int32
@td td_ktensor_score(a::Ptr{Cvoid}, b::Ptr{Cvoid}, use_weights::Int32, score::Ptr{Float64},
                     match::Ptr{Int64})::Int32
@td td_ktensor_local_rows(ktensor::Ptr{Cvoid}, mode::Int32, first::Ptr{Int64}, count::Ptr{Int64})::Int32
@td td_ktensor_get_local_factor(ktensor::Ptr{Cvoid}, mode::Int32, a::Ptr{Cvoid}, ld::Int64, space::Int32)::Int32
@td td_ktensor_gather(ktensor::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})::Int32
@td td_tensor_set_mode_name(tensor::Ptr{Cvoid}, mode::Int32, name::Cstring)::Int32
@td td_tensor_get_mode_name(tensor::Ptr{Cvoid}, mode::Int32, buf::Ptr{UInt8}, cap::Int64, needed::Ptr{Int64})::Int32
@td td_tensor_set_labels(tensor::Ptr{Cvoid}, mode::Int32, labels::Ptr{UInt8}, bytes::Int64)::Int32
@td td_tensor_get_label(tensor::Ptr{Cvoid}, mode::Int32, index::Int64, buf::Ptr{UInt8}, cap::Int64,
                        needed::Ptr{Int64})::Int32
@td td_tensor_get_labels(tensor::Ptr{Cvoid}, mode::Int32, buf::Ptr{UInt8}, cap::Int64, needed::Ptr{Int64})::Int32
@td td_ktensor_set_mode_name(ktensor::Ptr{Cvoid}, mode::Int32, name::Cstring)::Int32
@td td_ktensor_get_mode_name(ktensor::Ptr{Cvoid}, mode::Int32, buf::Ptr{UInt8}, cap::Int64, needed::Ptr{Int64})::Int32
@td td_ktensor_set_labels(ktensor::Ptr{Cvoid}, mode::Int32, labels::Ptr{UInt8}, bytes::Int64)::Int32
@td td_ktensor_get_label(ktensor::Ptr{Cvoid}, mode::Int32, index::Int64, buf::Ptr{UInt8}, cap::Int64,
                         needed::Ptr{Int64})::Int32
@td td_ktensor_get_labels(ktensor::Ptr{Cvoid}, mode::Int32, buf::Ptr{UInt8}, cap::Int64, needed::Ptr{Int64})::Int32
@td td_ktensor_get_leading(ktensor::Ptr{Cvoid}, mode::Int32, component::Int64, n::Int64, indices::Ptr{Int64},
                           values::Ptr{Float64}, found::Ptr{Int64})::Int32
@td td_mttkrp(context::Ptr{Cvoid}, tensor::Ptr{Cvoid}, mode::Int32, rank::Int64, factors::Ptr{Ptr{Cvoid}},
              ld::Ptr{Int64}, out::Ptr{Cvoid}, ld_out::Int64, space::Int32)::Int32
@td td_mttkrp_ktensor(context::Ptr{Cvoid}, tensor::Ptr{Cvoid}, mode::Int32, ktensor::Ptr{Cvoid},
                      out::Ptr{Cvoid}, ld_out::Int64, space::Int32)::Int32
@td td_cpals(context::Ptr{Cvoid}, tensor::Ptr{Cvoid}, rank::Int64, init::Ptr{Cvoid}, options::Ptr{Cvoid},
             progress::Callback, user::Ptr{Cvoid}, model::Ptr{Ptr{Cvoid}}, report::Ptr{Ptr{Cvoid}})::Int32
@td td_report_copy(report::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})::Int32
@td td_report_destroy(report::Ptr{Cvoid})::Cvoid
@td td_report_get_i64(report::Ptr{Cvoid}, key::Cstring, value::Ptr{Int64})::Int32
@td td_report_get_f64(report::Ptr{Cvoid}, key::Cstring, value::Ptr{Float64})::Int32
@td td_report_get_str(report::Ptr{Cvoid}, key::Cstring, buf::Ptr{UInt8}, cap::Int64, needed::Ptr{Int64})::Int32
@td td_report_get_series(report::Ptr{Cvoid}, key::Cstring, values::Ptr{Float64}, cap::Int64,
                         n::Ptr{Int64})::Int32
@td td_report_write(context::Ptr{Cvoid}, report::Ptr{Cvoid}, tensor::Ptr{Cvoid}, model::Ptr{Cvoid},
                    options::Ptr{Cvoid}, path::Cstring)::Int32
@td td_plan_create(context::Ptr{Cvoid}, order::Int32, dims::Ptr{Int64}, nnz::Int64, value_type::Int32, rank::Int64,
                   options::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})::Int32
@td td_plan_create_dense(context::Ptr{Cvoid}, order::Int32, dims::Ptr{Int64}, value_type::Int32, rank::Int64,
                         options::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})::Int32
@td td_plan_create_for_tensor(context::Ptr{Cvoid}, tensor::Ptr{Cvoid}, rank::Int64, options::Ptr{Cvoid},
                              out::Ptr{Ptr{Cvoid}})::Int32
@td td_plan_read(context::Ptr{Cvoid}, path::Cstring, rank::Int64, options::Ptr{Cvoid},
                 out::Ptr{Ptr{Cvoid}})::Int32
@td td_plan_share(plan::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})::Int32
@td td_plan_destroy(plan::Ptr{Cvoid})::Cvoid
@td td_plan_get_i64(plan::Ptr{Cvoid}, key::Cstring, value::Ptr{Int64})::Int32
@td td_plan_get_f64(plan::Ptr{Cvoid}, key::Cstring, value::Ptr{Float64})::Int32
@td td_plan_get_str(plan::Ptr{Cvoid}, key::Cstring, buf::Ptr{UInt8}, cap::Int64, needed::Ptr{Int64})::Int32
@td td_plan_get_series(plan::Ptr{Cvoid}, key::Cstring, values::Ptr{Float64}, cap::Int64, n::Ptr{Int64})::Int32
@td td_plan_describe(plan::Ptr{Cvoid}, buf::Ptr{UInt8}, cap::Int64, needed::Ptr{Int64})::Int32
@td td_tensor_read(context::Ptr{Cvoid}, path::Cstring, options::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}})::Int32
@td td_tensor_write(tensor::Ptr{Cvoid}, path::Cstring, options::Ptr{Cvoid})::Int32
@td td_ktensor_read(context::Ptr{Cvoid}, path::Cstring, out::Ptr{Ptr{Cvoid}})::Int32
@td td_ktensor_write(ktensor::Ptr{Cvoid}, path::Cstring, options::Ptr{Cvoid})::Int32

"""Finds every function in a library that was opened; throws if one is missing."""
function bind!(library::Ptr{Cvoid})
    for (name, address) in addresses
        address[] = dlsym(library, name)
    end
end

end
