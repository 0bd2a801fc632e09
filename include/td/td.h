/* td.h - the public interface of td, a library that decomposes sparse and dense tensors.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A tensor X of order N with dimensions d_0 .. d_{N-1} is approximated by a Kruskal tensor ("ktensor") of rank R,
 *
 *     X[i_0, ..., i_{N-1}]  ~  sum over r of  weights[r] * A_0[i_0, r] * ... * A_{N-1}[i_{N-1}, r],
 *
 * with CP-ALS, whose cost is MTTKRP, the matricized tensor times Khatri-Rao product (Kolda and Bader, SIAM Review
 * 51(3), 2009). This header is the manual: read it from top to bottom. It compiles as C99 and as C++17.
 *
 * A first program:
 *
 *     td_context *ctx = NULL;  td_tensor *x = NULL;  td_ktensor *model = NULL;
 *     if (td_context_create("auto", NULL, &ctx) < 0 ||
 *         td_tensor_read(ctx, "x.tns", NULL, &x) < 0 ||
 *         td_cpals(ctx, x, 8, NULL, NULL, NULL, NULL, &model, NULL) < 0) {
 *       char why[512];
 *       td_last_error(why, sizeof why);
 *       fprintf(stderr, "%s\n", why);
 *     }
 *     td_ktensor_destroy(model);  td_tensor_destroy(x);  td_context_destroy(ctx);
 *
 * Rules that hold for every function, unless it says otherwise:
 *
 * Modes      are numbered from 0. Only coordinates have a choice of base (index_base).
 * Sizes      are int64_t; they count elements, never bytes, unless the name says bytes.
 * Matrices   are column-major with a leading dimension: element (i, r) of a matrix a is a[i + r * ld], ld >= rows.
 *            Rows i >= rows of the padding are neither read nor written.
 * Ownership  Input arrays are copied before the call returns and never kept, but for the array of a dense tensor where
 *            option "borrow" asks for it (td_tensor_create_dense). What a *_create, *_read or td_cpals
 *            gives through its last arguments belongs to the caller, who ends it with the noun's *_destroy. Handles
 *            are checked: a null, destroyed or wrong kind of handle is TD_ERR_HANDLE, never a crash. They may be
 *            destroyed in any order and from any thread; a tensor outlives the context that it was made with.
 * Errors     Every td_status below 0 comes with a sentence from td_last_error that names what came and what was
 *            expected. TD_ERR_ARGUMENT .. TD_ERR_BACKEND_UNAVAILABLE (-1 .. -29): refused, nothing was changed.
 *            -30 and below: failed while working; outputs may be partly written, all handles stay usable.
 *            Every function that takes a handle may give TD_ERR_HANDLE, every function that takes a required pointer
 *            TD_ERR_ARGUMENT, and every function that makes something TD_ERR_HOST_MEMORY; these are not repeated below.
 * Numbers    Finite input never gives NaN. Input that is not finite is refused (TD_ERR_ARGUMENT).
 * Threads    A context is used by one thread at a time; distinct contexts are independent. Tensors, reports and plans
 *            are immutable and may be shared between threads. Options, ktensors and a handle's labels are used by one
 *            thread at a time while they are being changed.
 * Manners    The library does not print, exit, or install signal handlers, and leaves the process as it found it:
 *            OpenMP's thread count, current CUDA device, locale, floating-point mode, random state. Calls
 *            compute with round to nearest and no traps, whatever the caller's mode. Threads that cannot be started are
 *            done without. A child of fork may use td, but not a GPU. pthread_cancel takes effect after a call.
 */
#ifndef TD_TD_H
#define TD_TD_H

#include <stdint.h>

#define TD_VERSION_MAJOR 0
#define TD_VERSION_MINOR 1
#define TD_VERSION_PATCH 0
/* The number in the library's SONAME. A program built against one ABI version runs with every later library of it. */
#define TD_ABI_VERSION 0

#ifndef TD_API
#if defined(_WIN32)
#define TD_API
#else
#define TD_API __attribute__((visibility("default")))
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Status ------------------------------------------------------------------------------------------------------ */
/** @defgroup td_status Status and errors
 *  @{ */

/** What a call came to. 0: done. > 0: done, with a note. -1 .. -29: refused before any work, nothing was changed.
 *  <= -30: failed while working. Values are pinned and never reused. */
typedef int32_t td_status;
enum {
  TD_OK = 0,
  TD_STOPPED = 1,                   /**< a progress callback asked to stop; the results are valid */
  TD_ERR_ARGUMENT = -1,             /**< an argument has no meaning: null pointer, NaN, number out of its range */
  TD_ERR_SHAPE = -2,                /**< sizes that do not fit: dims, order, rank, leading dimension, strides */
  TD_ERR_INDEX = -3,                /**< a coordinate outside the tensor, or a repeated one where that is refused */
  TD_ERR_TYPE = -4,                 /**< an unknown type code, or types that do not fit together */
  TD_ERR_HANDLE = -5,               /**< a null, destroyed or wrong kind of handle */
  TD_ERR_OPTION_UNKNOWN = -10,      /**< no option or result of that name; the text suggests the nearest */
  TD_ERR_OPTION_RANGE = -11,        /**< an option's value has the wrong type or is out of its range */
  TD_ERR_UNSUPPORTED = -20,         /**< a sound request that this build or device cannot serve */
  TD_ERR_BACKEND_UNAVAILABLE = -21, /**< the device asked for is not there: no library, no driver, no device */
  TD_ERR_HOST_MEMORY = -30,         /**< out of host memory; the text says how many bytes for what */
  TD_ERR_DEVICE_MEMORY = -31,       /**< out of device memory */
  TD_ERR_DEVICE = -32,              /**< a device failed while working */
  TD_ERR_NUMERICAL = -40,           /**< a computation overflowed or failed to converge */
  TD_ERR_IO = -50,                  /**< a file could not be read or written, or is not what it should be */
  TD_ERR_COMMUNICATION = -60,       /**< a function of the caller's communicator failed */
  TD_ERR_INTERNAL = -99             /**< a defect in td: please report it with the text */
};

/** The name of a status, such as "TD_ERR_SHAPE". Static, never NULL; "TD_STATUS_UNKNOWN" for other numbers. */
TD_API const char *td_status_name(td_status status);

/** Text of this thread's last failed call, in UTF-8. Copies at most cap bytes including the terminating NUL into buf
 *  (buf may be NULL if cap is 0) and returns the bytes needed for the whole text including NUL, at most 1024: in place
 *  of the middle of a longer one, as of a path, stands "...". A call that succeeds leaves the text as it was; before
 *  any failure it is empty. */
TD_API int64_t td_last_error(char *buf, int64_t cap);

/** @} */

/* ---- What is loaded ---------------------------------------------------------------------------------------------- */
/** @defgroup td_loaded What is loaded
 *  @{ */

/** Version of the library that is loaded: 10000 * major + 100 * minor + patch. */
TD_API int32_t td_version(void);

/** ABI version of the library that is loaded. Bindings compare it with the TD_ABI_VERSION they were written for. */
TD_API int32_t td_abi_version(void);

/** 1 if the loaded library has a feature, else 0. Known names: "reference", "cpu", "openmp", "cuda" (the CUDA backend
 *  library was found and loads, which does not say that there is a GPU). NULL and other names give 0. */
TD_API int32_t td_has_feature(const char *name);

/** @} */

/* ---- Codes ------------------------------------------------------------------------------------------------------- */
/** @defgroup td_codes Codes
 *  @{ */

/** Type of the numbers in an array. Values are pinned. */
typedef int32_t td_type;
enum {
  TD_F32 = 1,  /**< IEEE binary32 */
  TD_F64 = 2,  /**< IEEE binary64 */
  TD_I32 = 11, /**< int32_t */
  TD_I64 = 12  /**< int64_t */
};

/** Where an array lives. Values are pinned. */
typedef int32_t td_space;
enum {
  TD_HOST = 0,  /**< memory that the CPU reads and writes */
  TD_DEVICE = 1 /**< memory of the context's GPU, of several the first one (device or managed memory; else
                     TD_ERR_ARGUMENT); td waits for the work that the caller has started there, or only for that on the
                     caller's stream: td_context_set_stream. TD_ERR_UNSUPPORTED in a context without a GPU */
};

/** @} */

/* ---- Handles ----------------------------------------------------------------------------------------------------- */
/** @defgroup td_handles Handles
 *  @{ */

typedef struct td_context td_context;           /**< where work runs */
typedef struct td_options td_options;           /**< named settings */
typedef struct td_tensor td_tensor;             /**< a sparse or dense tensor, immutable */
typedef struct td_ktensor td_ktensor;           /**< weights and factor matrices */
typedef struct td_report td_report;             /**< what a run did, by name; immutable */
typedef struct td_plan td_plan;                 /**< what would be done with a tensor, and what that takes; immutable */
typedef struct td_communicator td_communicator; /**< how processes that compute together meet */

/** @} */

/* ---- Options: by name, typed, checked when set ------------------------------------------------------------------- */
/** @defgroup td_options Options
 *  @{ */

/** Makes an empty set of options: every option has its default. One set may be given to any function; each function
 *  reads the options of its own scope and leaves the others alone. */
TD_API td_status td_options_create(td_options **out);

/** A copy of its own. */
TD_API td_status td_options_copy(const td_options *options, td_options **out);

/** Ends a set of options. NULL is allowed. */
TD_API void td_options_destroy(td_options *options);

/** Sets an option that takes a whole number (also one that takes a real number).
 *  Errors: TD_ERR_OPTION_UNKNOWN, TD_ERR_OPTION_RANGE. */
TD_API td_status td_options_set_i64(td_options *options, const char *key, int64_t value);

/** Sets an option that takes a real number. Errors: TD_ERR_OPTION_UNKNOWN, TD_ERR_OPTION_RANGE. */
TD_API td_status td_options_set_f64(td_options *options, const char *key, double value);

/** Sets any option from text: "nvecs", "1e-6", "50". Numbers are read with '.' as the decimal point in every locale.
 *  Errors: TD_ERR_OPTION_UNKNOWN, TD_ERR_OPTION_RANGE. */
TD_API td_status td_options_set_str(td_options *options, const char *key, const char *value);

/** Reads an option that takes a whole number; its default if it was not set. options may be NULL: the default. */
TD_API td_status td_options_get_i64(const td_options *options, const char *key, int64_t *value);

/** Reads an option that takes a number; its default if it was not set. options may be NULL: the default. */
TD_API td_status td_options_get_f64(const td_options *options, const char *key, double *value);

/** Reads any option as text, its default if it was not set. Text goes out as in every function with (buf, cap,
 *  needed): at most cap bytes including NUL are written, *needed (may be NULL) becomes the bytes of the whole text
 *  including NUL, and a text cut short is no error. options may be NULL: the default. */
TD_API td_status td_options_get_str(const td_options *options, const char *key, char *buf, int64_t cap,
                                    int64_t *needed);

/** How many options there are. */
TD_API int64_t td_option_count(void);

/** Describes option i (0 <= i < td_option_count()) in one line of eight fields separated by tabs:
 *  scope, name, type ("i64", "f64" or "str"), default, smallest, largest, choices (separated by '|'), help.
 *  A field that does not apply is empty. Scopes: "context", "tensor", "plan", "read", "write",
 *  "cpals", "report".
 *  Errors: TD_ERR_ARGUMENT if i is out of range. */
TD_API td_status td_option_describe(int64_t i, char *buf, int64_t cap, int64_t *needed);

/** @} */

/* ---- Context: where work runs ------------------------------------------------------------------------------------ */
/** @defgroup td_context Contexts
 *  @{ */

/** Message levels of td_log_fn: 1 warning, 2 information, 3 detail. */
typedef void (*td_log_fn)(int32_t level, const char *text, void *user);

/** Makes a context for devices:
 *    "auto"        the GPU if the CUDA backend and a GPU are there, else "cpu"
 *    "cpu"         all cores that the process may use; "cpu:4" the same cores in four workers, each owning rows
 *    "reference"   the serial, literal kernels that all others are tested against
 *    "cuda"        the first GPU; "cuda:2" that one; "cuda:0,1" these; "cuda:all" every one. Of several each is a
 *                  worker, which owns rows and holds the entries that it sums
 *
 *  options (may be NULL): scope "context". Errors: TD_ERR_ARGUMENT for a string that is none of these, or that names a
 *  GPU twice; TD_ERR_BACKEND_UNAVAILABLE with the reason. */
TD_API td_status td_context_create(const char *devices, const td_options *options, td_context **out);

/** Another handle of the same context, for languages in which a variable may be assigned to another: the context ends
 *  with the last of its handles. It is still used by one thread at a time, by whichever handle. */
TD_API td_status td_context_share(const td_context *context, td_context **out);

/** Ends a context. NULL is allowed. Must not be called while another thread works in it. */
TD_API void td_context_destroy(td_context *context);

/** Sets who hears of decisions and warnings, such as the dialect that was found in a file; NULL for nobody. The
 *  function is called from the thread that called into td, and must return (no longjmp, no exception; it may end its
 *  thread with pthread_exit). */
TD_API td_status td_context_set_log(td_context *context, td_log_fn log, void *user);

/** Names the CUDA stream by which the caller orders work on arrays with space = TD_DEVICE. A call reads and writes
 *  such arrays after all that was on the stream when it was made, and need not wait for other work on the GPU, unless
 *  copies have to be evicted there. It returns when it is done with them: what is put on the stream from then on
 *  finds td's results. Without a stream a call waits for all that the caller has started on the GPU.
 *
 *  slot    which of the context's GPUs, counted from 0 in the order of its string of devices. Arrays are on the first
 *  stream  a cudaStream_t of that GPU, also cudaStreamLegacy or cudaStreamPerThread. It must last until another one
 *          is set or the context ends. NULL: none
 *
 *  Errors: TD_ERR_UNSUPPORTED in a context without a GPU; TD_ERR_ARGUMENT (slot; a stream of another GPU, or one that
 *  is being captured into a graph, for which calls with TD_DEVICE are refused, too). While any stream of the GPU is
 *  captured, a call with TD_DEVICE needs one that is not: without, it is refused, and CUDA ends the capture. */
TD_API td_status td_context_set_stream(td_context *context, int32_t slot, void *stream);

/* Processes that compute together, on one machine or many, mostly by MPI: td/td_mpi.h makes a td_communicator of an
 * MPI_Comm, and all below is what it does that with. Each process makes a context of its own with the same
 * communicator, brings a part of the tensor, and gets the whole model. The functions that say so are collective: all
 * processes of the communicator call them in the same order, with the same options and sizes. If one fails on any
 * process (a bad entry, no memory, a communicator's function), it gives the same status on all, and the text names the
 * process; but a null handle is known on its own process alone. */

/** Sums (operation = 0) or takes the largest (1) of data[k] over all processes, for each of count numbers, in place.
 *  The result is the same bits on every process. A function of a communicator is called by the thread that calls td;
 *  user is what td_communicator_create was given. It returns 0, or another number where it failed, and then it has
 *  returned on all processes, too, or will. */
typedef int32_t (*td_all_reduce_fn)(double *data, int64_t count, int32_t operation, void *user);
/** Sends sent_bytes[p] bytes to each process p, this one included, which lie in `sent` one process after the other, and
 *  receives received_bytes[p] from it in the same way. */
typedef int32_t (*td_all_to_all_v_fn)(const void *sent, const int64_t *sent_bytes, void *received,
                                      const int64_t *received_bytes, void *user);
/** Copies bytes of process root to all. */
typedef int32_t (*td_broadcast_fn)(void *data, int64_t bytes, int32_t root, void *user);
/** Ends what the other processes wait for: called where the communicator failed in such a way that they cannot be told.
 *  Of MPI that is MPI_Abort. If it returns, the call that failed does too, and every function of the communicator must
 *  fail from then on, on all processes. */
typedef void (*td_abort_fn)(td_status status, void *user);
/** Called once, when neither the handle nor a context or tensor uses the communicator any more. */
typedef void (*td_release_fn)(void *user);

/** Makes a communicator of functions. rank: of this process, 0 .. size - 1. release may be NULL, and is not called if
 *  this fails. Errors: TD_ERR_ARGUMENT. */
TD_API td_status td_communicator_create(int32_t rank, int32_t size, td_all_reduce_fn all_reduce,
                                        td_all_to_all_v_fn all_to_all_v, td_broadcast_fn broadcast, td_abort_fn abort,
                                        td_release_fn release, void *user, td_communicator **out);

/** Ends a handle. NULL is allowed. The functions are used as long as a context or tensor that was made with them. */
TD_API void td_communicator_destroy(td_communicator *communicator);

/** As td_context_create, of a context that the processes of a communicator share. Collective. Each process may have its
 *  own number of threads. devices:
 *    "cpu", "reference"
 *    "cuda:local"  a GPU for each process: of those that it sees the first that no process of a smaller rank has
 *    "cuda", "cuda:2"    this GPU, which no other process may have unless option "virtual_devices" is 1
 *    "cuda:0,1", "cuda:all"    these, or all that the process sees, each a worker; other processes may have another
 *                  number, and none of these. Where any process has several, each names its own
 *    "auto"        "cuda:local" where there are GPUs enough for all processes, else "cpu"
 *  Either all processes have a GPU or none; with option "exchange" = host on all, some may name "cpu" beside others'
 *  GPUs, and each worker gets as many entries as any other. What is in the memories of GPUs goes by NCCL, which is
 *  connected here, or, where it cannot be, by way of the host and the communicator's functions (option "exchange").
 *
 *  Collective in such a context:
 *    td_tensor_create      each process brings any of the entries, of the tensor's whole dims; those at the same
 *                          coordinates are summed, whichever processes brought them. Entries move once, to the process
 *                          that works on them. What is asked of the tensor is answered for the whole; "stored_here"
 *                          tells how many entries this process holds
 *    td_tensor_create_dense_block    each process brings a block of a dense tensor
 *    td_tensor_read        each process parses a part of one file, which all can read; gzip is inflated by each, and
 *                          dense text is parsed by process 0. With option "file_per_process" = 1 each reads all of a
 *                          sparse file of its own, of the same format and index base as the others', and of the same
 *                          dims where it states them (where none does, they are the largest indices of all); "%p" in
 *                          path is the process's number
 *    td_cpals              every process gets the same model and report, or with option "model" = distributed its
 *                          block of the model's rows. A callback is called on each process that gave one, and stops
 *                          all. init: a model in blocks on these processes, or a whole one, of which that of process 0
 *                          counts. All write the checkpoint together, in one file, and each reads its block of
 *                          "resume". With "deterministic" = 1 each makes a copy of the whole tensor for the run, on
 *                          its host, and results are bitwise the same for any number of processes; with GPUs, one or
 *                          several each, those of one GPU. Where some have several the tensor has to be one that was
 *                          made in this context
 *    td_mttkrp, td_mttkrp_ktensor    with the same factors on every process; every process gets all rows
 *  Other functions that work on a tensor refuse one that processes share, and such a context (TD_ERR_UNSUPPORTED).
 *
 *  Errors: as td_context_create; TD_ERR_UNSUPPORTED ("cpu:2", "exchange" = peer, "cuda:local" where another process has
 *  several GPUs); TD_ERR_BACKEND_UNAVAILABLE (too few GPUs, one that another process has, or "exchange" = nccl without
 *  it); TD_ERR_COMMUNICATION. */
TD_API td_status td_context_create_distributed(const char *devices, const td_options *options,
                                               td_communicator *communicator, td_context **out);

/** One line for people: the devices, workers, threads and instruction set. Text as in td_options_get_str. */
TD_API td_status td_context_describe(const td_context *context, char *buf, int64_t cap, int64_t *needed);

/** @} */

/* ---- Tensor: immutable once made --------------------------------------------------------------------------------- */
/** @defgroup td_tensor Tensors
 *  @{ */

/** Makes a sparse tensor from coordinates.
 *
 *  order       2 .. 64; dims[order], each >= 1, in any combination (their product may exceed 2^63)
 *  nnz         entries, >= 0; repeated coordinates count each
 *  indices     order arrays of nnz coordinates each, of index_type TD_I32 or TD_I64; indices[m][k] is entry k's
 *              coordinate in mode m, counted from index_base (0 or 1)
 *  values      nnz values of value_type TD_F32 or TD_F64, which is the type the tensor is stored and worked on in
 *  space       where indices[m] and values live (the array of pointers itself is on the host)
 *  options     may be NULL; scope "tensor": "format", "duplicates", "groups",
 *              "empty_rows", "sharding", "tiles", "conflicts", "accumulate", "gather"
 *
 *  Entries at the same coordinates are summed, in the order given (or refused: "duplicates" = "error"). Explicit zeros
 *  are kept. With nnz = 0 indices and values may be NULL.
 *  Errors: TD_ERR_SHAPE (order, dims, nnz), TD_ERR_INDEX (names entry, mode and coordinate, in the caller's base),
 *  TD_ERR_ARGUMENT (NaN or infinite value: names the entry), TD_ERR_TYPE, TD_ERR_UNSUPPORTED (space; "borrow"; "groups"
 *  whose cells are too many; "tiles" too small; "groups", "tiles" or "conflicts" with no meaning for the format, or
 *  with "accumulate"),
 *  TD_ERR_OPTION_RANGE ("groups" is no partition of the modes or leaves no mode alone; "tiles" is no number). */
TD_API td_status td_tensor_create(td_context *context, int32_t order, const int64_t *dims, int64_t nnz,
                                  td_type index_type, const void *const *indices, int32_t index_base,
                                  td_type value_type, const void *values, td_space space, const td_options *options,
                                  td_tensor **out);

/** Makes a dense tensor. Element (i_0, ..., i_{N-1}) is values[sum over m of i_m * strides[m]]; strides count elements,
 *  may be negative or zero, and NULL means that the first index runs fastest without gaps (Fortran, Julia). options may
 *  be NULL; scope "tensor": "groups", "accumulate", "gather", "borrow", and on a GPU "dense_kernel",
 *  "dense_tile_width".
 *
 *  With "borrow" = 1 the tensor works on the array where it lies, and has no copy of its own. The array stays the
 *  caller's, who keeps it there, with all its elements as they are, until the tensor has ended: until the last of its
 *  handles (td_tensor_share) is destroyed and every call that was given one has returned. td never writes to it. A
 *  change meanwhile makes results wrong, and memory that is freed is read. The elements are looked at once now: the
 *  norm and the other facts are known from then on, and one that is not finite is refused as in a copy.
 *
 *  strides    at least 1 where the dim is above 1, and no two elements may share a place: with the modes from the
 *             smallest stride to the largest, each stride is at least the reach of the modes before it. The order
 *             of the modes is free (C or Fortran), and so are gaps between elements, as of a field with a halo; what
 *             lies in gaps is never read. An array without gaps is as fast in any order, but only that with the first
 *             index fastest shares partial products ("groups"). With gaps blocks are gathered as they are needed: on
 *             a GPU in a buffer of up to 128 MiB, at about three times the traffic in its memory
 *  TD_HOST    Kernels of the CPU work on the array itself. A GPU gets copies of it, or streams it, as of any
 *             tensor, but straight from the array; what is pinned, or can be, then goes at the full rate
 *  TD_DEVICE  Kernels of that GPU work on the array itself, which is never evicted; other contexts than of that GPU
 *             alone are refused the tensor (TD_ERR_UNSUPPORTED). Exports and files are written through a copy on the
 *             host. The array must be complete by the order of work that td_context_set_stream describes
 *
 *  Where the values' magnitude asks for it (below about 1e-45 or above 1e45, of f32 1e-18 and 1e18), runs work on a
 *  scaled copy after all.
 *
 *  Errors: TD_ERR_SHAPE (order outside 2 .. 64, a dim < 1, more than 2^63 - 1 elements, or strides by which they lie
 *  more than 2^63 - 1 bytes apart), TD_ERR_ARGUMENT (NaN or infinite value: names its position; values on another GPU,
 * on the host with TD_DEVICE or on a GPU with TD_HOST; to be borrowed, an address that is no multiple of a number's
 * size), TD_ERR_TYPE, TD_ERR_UNSUPPORTED (space; "groups" that share a product with "accumulate", or of a borrowed
 * array in another order or with gaps; "borrow" of an array on a GPU in a context of several; "dense_kernel" on a CPU),
 * TD_ERR_OPTION_RANGE ("groups" is no partition of the modes; "dense_tile_width" without "dense_kernel" = "tile"). */
TD_API td_status td_tensor_create_dense(td_context *context, int32_t order, const int64_t *dims, const int64_t *strides,
                                        td_type value_type, const void *values, td_space space,
                                        const td_options *options, td_tensor **out);

/** Makes a dense tensor of blocks, where processes share the context; a collective call. Each process brings the
 *  elements [offset[m], offset[m] + block_dims[m]) of each mode m of a tensor of `dims`: element (i_0, ..., i_{N-1}) of
 *  the tensor is values[sum over m of (i_m - offset[m]) * strides[m]] of the process whose block has it. Together the
 *  blocks have each element once, in whatever partition; a process whose block_dims have a 0 brings none, and values
 *  may be NULL. The elements travel to boxes of nearly the same size, one a process. strides and options as in
 *  td_tensor_create_dense, but for "borrow", which is refused. Where no processes share the context, the one block is
 *  all of the tensor, and the call is td_tensor_create_dense.
 *  Errors: TD_ERR_SHAPE (as td_tensor_create_dense; a block that is not within dims; blocks that share an element, or
 *  leave one out), TD_ERR_ARGUMENT (NaN or infinite value: names its position in the tensor; dims, types or options
 *  that are not those of process 0), TD_ERR_TYPE, TD_ERR_UNSUPPORTED ("borrow", space). */
TD_API td_status td_tensor_create_dense_block(td_context *context, int32_t order, const int64_t *dims,
                                              const int64_t *offset, const int64_t *block_dims, const int64_t *strides,
                                              td_type value_type, const void *values, td_space space,
                                              const td_options *options, td_tensor **out);

/** Another handle of the same tensor, which behaves as a copy, since a tensor never changes, and needs no memory. */
TD_API td_status td_tensor_share(const td_tensor *tensor, td_tensor **out);

/** Ends a tensor. NULL is allowed. */
TD_API void td_tensor_destroy(td_tensor *tensor);

/** The number of modes. */
TD_API td_status td_tensor_order(const td_tensor *tensor, int32_t *order);
/** Writes the order dims. */
TD_API td_status td_tensor_dims(const td_tensor *tensor, int64_t *dims);
/** Stored entries after duplicates were summed; of a dense tensor the product of its dims. */
TD_API td_status td_tensor_nnz(const td_tensor *tensor, int64_t *nnz);
/** TD_F32 or TD_F64. */
TD_API td_status td_tensor_type(const td_tensor *tensor, td_type *value_type);
/** Frobenius norm: the square root of the sum of squares, computed in f64. Errors: TD_ERR_NUMERICAL if it is beyond
 *  f64. */
TD_API td_status td_tensor_norm(const td_tensor *tensor, double *norm);

/** A whole-number fact by name: "sparse" (1 or 0), "duplicates" (entries merged into others when the tensor was made),
 *  "zeros" (stored entries that are 0), "index_bits" (bits of all modes' indices together), "bytes" (host memory of its
 *  own), "borrowed" (1: works on the caller's array, which does not count as its own).
 *  Of what a GPU has built, host memory may be taken at its first need there. Errors: TD_ERR_OPTION_UNKNOWN. */
TD_API td_status td_tensor_get_i64(const td_tensor *tensor, const char *key, int64_t *value);

/** A real-number fact by name: "norm", "min", "max", "sum", over stored entries; 0 where there are none.
 *  "seconds.build": what checking and storing took when the tensor was made, without reading its file.
 *  Errors: TD_ERR_OPTION_UNKNOWN; TD_ERR_NUMERICAL for a norm or a sum beyond f64. */
TD_API td_status td_tensor_get_f64(const td_tensor *tensor, const char *key, double *value);

/** A text fact by name: "format" (how it is stored), "groups" (modes that may share partial products in CP-ALS, as in
 *  "0,1|2,3"), "source" (for a tensor read from a file: dialect, index base and what they were decided by; else empty).
 *  Text as in td_options_get_str. Errors: TD_ERR_OPTION_UNKNOWN. */
TD_API td_status td_tensor_get_str(const td_tensor *tensor, const char *key, char *buf, int64_t cap, int64_t *needed);

/** Stored entries in each slice of a mode: counts[dims[mode]]. Errors: TD_ERR_SHAPE (mode). */
TD_API td_status td_tensor_slice_counts(const td_tensor *tensor, int32_t mode, int64_t *counts);

/** Copies the stored entries of a sparse tensor out, in td's order, which is the same for equal tensors:
 *  indices[m][nnz] of index_type counted from index_base, values[nnz] of value_type (converted if it is not the
 *  tensor's). indices, single indices[m] or values may be NULL to leave them out.
 *  Errors: TD_ERR_UNSUPPORTED for a dense tensor; TD_ERR_TYPE; TD_ERR_SHAPE if TD_I32 cannot hold a dim;
 *  TD_ERR_NUMERICAL (a value is beyond the largest number of value_type). */
TD_API td_status td_tensor_get_entries(const td_tensor *tensor, td_type index_type, void *const *indices,
                                       int32_t index_base, td_type value_type, void *values);

/** Copies a tensor out as a dense array, strides as in td_tensor_create_dense (not zero where the dim is above 1);
 *  a sparse tensor's missing entries become 0. Errors: TD_ERR_SHAPE for more than 2^63 - 1 elements, or strides by
 *  which they lie more than 2^63 - 1 bytes apart; TD_ERR_TYPE; TD_ERR_NUMERICAL as td_tensor_get_entries. */
TD_API td_status td_tensor_get_dense(const td_tensor *tensor, const int64_t *strides, td_type value_type, void *values);

/** One line for people: order, dims, entries, type, format and bytes. Text as in td_options_get_str. */
TD_API td_status td_tensor_describe(const td_tensor *tensor, char *buf, int64_t cap, int64_t *needed);

/** @} */

/* ---- Ktensor: weights and factor matrices ------------------------------------------------------------------------ */
/** @defgroup td_ktensor Ktensors
 *  @{ */

/** Makes a ktensor with weights 1 and factors 0. rank >= 1 (it may exceed every dim); type TD_F32 or TD_F64 is that of
 *  the factors; weights are always f64. Option "memory_limit" of the context holds for it, for its copies and for what
 *  is computed from it. Errors: TD_ERR_SHAPE, TD_ERR_TYPE. */
TD_API td_status td_ktensor_create(td_context *context, int32_t order, const int64_t *dims, int64_t rank, td_type type,
                                   td_ktensor **out);

/** A copy of its own. */
TD_API td_status td_ktensor_copy(const td_ktensor *ktensor, td_ktensor **out);

/** Ends a ktensor. NULL is allowed. */
TD_API void td_ktensor_destroy(td_ktensor *ktensor);

/** Any of the outputs may be NULL; dims has room for order numbers. */
TD_API td_status td_ktensor_shape(const td_ktensor *ktensor, int32_t *order, int64_t *dims, int64_t *rank,
                                  td_type *type);

/** Sets factor `mode` from a column-major matrix, dims[mode] x rank, of the ktensor's type, leading dimension ld.
 *  Errors: TD_ERR_SHAPE (mode, ld), TD_ERR_ARGUMENT (not finite: names row and column), TD_ERR_UNSUPPORTED (space). */
TD_API td_status td_ktensor_set_factor(td_ktensor *ktensor, int32_t mode, const void *a, int64_t ld, td_space space);
/** Copies factor `mode` out; arguments and errors as in td_ktensor_set_factor. */
TD_API td_status td_ktensor_get_factor(const td_ktensor *ktensor, int32_t mode, void *a, int64_t ld, td_space space);
/** Sets the rank weights, f64. Errors: TD_ERR_ARGUMENT (not finite). */
TD_API td_status td_ktensor_set_weights(td_ktensor *ktensor, const double *weights);
/** Copies the rank weights out, f64. */
TD_API td_status td_ktensor_get_weights(const td_ktensor *ktensor, double *weights);

/** Scales every factor column to Euclidean length 1 and moves the lengths into the weights. A zero column stays zero
 *  and its weight becomes 0. Errors: TD_ERR_NUMERICAL (a weight is beyond f64). */
TD_API td_status td_ktensor_normalize(td_ktensor *ktensor);

/** As td_ktensor_normalize, then orders the components by descending weight (a weight that is negative is made
 *  positive first by turning the sign of the first factor's column). As `arrange` of Tensor Toolbox. Errors: as
 *  td_ktensor_normalize. */
TD_API td_status td_ktensor_arrange(td_ktensor *ktensor);

/** Turns signs in pairs of modes so that in each component as many columns as possible have their entry of largest
 *  magnitude positive; the tensor does not change. As `fixsigns` of Tensor Toolbox. */
TD_API td_status td_ktensor_fixsigns(td_ktensor *ktensor);

/** Frobenius norm of the full tensor, from the factors' Gram matrices (Bader and Kolda, SIAM J. Sci. Comput. 30, 2007).
 *  Errors: TD_ERR_NUMERICAL (it is beyond the largest number in f64). */
TD_API td_status td_ktensor_norm(const td_ktensor *ktensor, double *norm);

/** Inner product of two ktensors of the same dims (ranks and types may differ). Errors: TD_ERR_SHAPE, TD_ERR_NUMERICAL
 *  as td_ktensor_norm. */
TD_API td_status td_ktensor_dot(const td_ktensor *a, const td_ktensor *b, double *dot);

/** Inner product of a tensor and a ktensor of the same dims, summed over the tensor's entries. Errors: TD_ERR_SHAPE,
 *  TD_ERR_NUMERICAL as td_ktensor_norm. */
TD_API td_status td_ktensor_dot_tensor(td_context *context, const td_ktensor *ktensor, const td_tensor *tensor,
                                       double *dot);

/** How well a ktensor models a tensor of the same dims; every output may be NULL.
 *    fit        1 - |X - M| / |X|
 *    explained  1 - |X - M|^2 / |X|^2
 *    relative   |X - M| / |X|
 *    residual   |X - M|
 *  with Frobenius norms. The residual is computed from |X|^2 + |M|^2 - 2 <X, M>, and again entry by entry where that
 *  difference has lost its digits. For X = 0: fit and explained are 1 and relative 0 if M = 0; else fit and explained
 *  are 0 and relative is 1. Errors: TD_ERR_SHAPE, TD_ERR_NUMERICAL (an output that is asked for is beyond f64). */
TD_API td_status td_ktensor_fit(td_context *context, const td_ktensor *ktensor, const td_tensor *tensor, double *fit,
                                double *explained, double *relative, double *residual);

/** The model's values at n coordinates, given as in td_tensor_create; values[n] f64. Errors: TD_ERR_INDEX,
 *  TD_ERR_NUMERICAL (a value is beyond f64). */
TD_API td_status td_ktensor_values_at(const td_ktensor *ktensor, int64_t n, td_type index_type,
                                      const void *const *indices, int32_t index_base, double *values);

/** Writes the full tensor, strides as in td_tensor_get_dense. Errors: TD_ERR_SHAPE as there, TD_ERR_NUMERICAL (a value
 *  is beyond the largest number of value_type). */
TD_API td_status td_ktensor_full(const td_ktensor *ktensor, const int64_t *strides, td_type value_type, void *values);

/** Factor match score of two ktensors of the same dims: the components of the one with fewer are matched to the
 *  other's so that the mean over them of  (1 - |wa - wb| / max(wa, wb)) * product over modes of |cosine|  is largest
 *  (optimal assignment), with normalized columns; with use_weights = 0 the first factor is left out. 1 is a perfect
 *  match, and exactly 1 is the score of a ktensor and itself; two columns of zeros have cosine 1, one with another 0.
 *  match (may be NULL) has room for rank of a: match[r] is b's component for a's component r, or -1.
 *  From Acar, Dunlavy, Kolda and Morup, Chemom. Intell. Lab. Syst. 106, 2011; as `score` of Tensor Toolbox, but
 *  optimal where that is greedy. It takes 8 bytes for each pair of components. Errors: TD_ERR_SHAPE. */
TD_API td_status td_ktensor_score(const td_ktensor *a, const td_ktensor *b, int32_t use_weights, double *score,
                                  int64_t *match);

/** A model in blocks (td_cpals with option "model" = distributed, in a context that P processes share): of a factor
 * with d rows process p has d / P rows that follow one another, one more where p < d mod P, and all processes have the
 *  weights. td_ktensor_copy, _shape, _get_weights, labels and the two functions below work on what is here. Collective,
 *  with the same result on all: td_ktensor_normalize, _arrange, _fixsigns, _norm, _gather and _write, and _dot and
 *  _score, where the other ktensor may be in blocks too, or the same whole one on all. It may be `init` of td_cpals in
 *  a context of the same communicator. Other functions refuse it (TD_ERR_UNSUPPORTED).
 *
 *  The rows of factor `mode` that are here: first, first + 1, ..., count of them, perhaps none; of a whole ktensor all
 *  rows. Either output may be NULL. Errors: TD_ERR_SHAPE (mode). */
TD_API td_status td_ktensor_local_rows(const td_ktensor *ktensor, int32_t mode, int64_t *first, int64_t *count);

/** Copies these rows out, count x rank, column-major. Arguments and errors as in td_ktensor_get_factor. */
TD_API td_status td_ktensor_get_local_factor(const td_ktensor *ktensor, int32_t mode, void *a, int64_t ld,
                                             td_space space);

/** A whole ktensor of one in blocks, on all processes; collective. Of a whole one it is a copy. Errors:
 *  TD_ERR_HOST_MEMORY, TD_ERR_COMMUNICATION. */
TD_API td_status td_ktensor_gather(const td_ktensor *ktensor, td_ktensor **out);

/** @} */

/* ---- Labels: what modes and indices stand for -------------------------------------------------------------------- */
/** @defgroup td_labels Labels
 *  Modes may have names, such as "user" or "month", and their indices labels, such as "alice" or "2024-03". They are
 *  UTF-8 and need not differ. A tensor that is read from a table has them (td_tensor_read); td's binary files hold
 *  them, other formats do not. td_cpals gives the model those of its tensor, or where that has none, those of init.
 *
 *  Labels belong to the handle: setting them changes what is known by that handle alone, which then is used by one
 *  thread at a time, and td_tensor_share and td_ktensor_copy take them over. The tensor itself never changes, and its
 *  models share its labels' memory.
 *  @{ */

/** Names a mode; NULL or "" takes its name away. Errors: TD_ERR_SHAPE (mode), TD_ERR_ARGUMENT (not UTF-8). */
TD_API td_status td_tensor_set_mode_name(td_tensor *tensor, int32_t mode, const char *name);
/** As td_tensor_set_mode_name. */
TD_API td_status td_ktensor_set_mode_name(td_ktensor *ktensor, int32_t mode, const char *name);

/** The name of a mode; empty if it has none. Text as in td_options_get_str. Errors: TD_ERR_SHAPE (mode). */
TD_API td_status td_tensor_get_mode_name(const td_tensor *tensor, int32_t mode, char *buf, int64_t cap,
                                         int64_t *needed);
/** As td_tensor_get_mode_name. */
TD_API td_status td_ktensor_get_mode_name(const td_ktensor *ktensor, int32_t mode, char *buf, int64_t cap,
                                          int64_t *needed);

/** Labels the indices of a mode: dims[mode] texts one after the other, each ended by NUL, in all `bytes` bytes, as in
 *  "Jan\0Feb\0Mar" and its sizeof. bytes = 0 takes the labels away; labels may be NULL then.
 *  Errors: TD_ERR_SHAPE (mode), TD_ERR_ARGUMENT (another number of labels, not UTF-8: names the index). */
TD_API td_status td_tensor_set_labels(td_tensor *tensor, int32_t mode, const char *labels, int64_t bytes);
/** As td_tensor_set_labels. */
TD_API td_status td_ktensor_set_labels(td_ktensor *ktensor, int32_t mode, const char *labels, int64_t bytes);

/** The label of one index, counted from 0; empty if the mode has no labels. Text as in td_options_get_str.
 *  Errors: TD_ERR_SHAPE (mode), TD_ERR_INDEX. */
TD_API td_status td_tensor_get_label(const td_tensor *tensor, int32_t mode, int64_t index, char *buf, int64_t cap,
                                     int64_t *needed);
/** As td_tensor_get_label. */
TD_API td_status td_ktensor_get_label(const td_ktensor *ktensor, int32_t mode, int64_t index, char *buf, int64_t cap,
                                      int64_t *needed);

/** All labels of a mode as td_tensor_set_labels takes them. Copies at most cap bytes and sets *needed (may be NULL) to
 *  the bytes of all: 0 if the mode has no labels. Errors: TD_ERR_SHAPE (mode). */
TD_API td_status td_tensor_get_labels(const td_tensor *tensor, int32_t mode, char *buf, int64_t cap, int64_t *needed);
/** As td_tensor_get_labels. */
TD_API td_status td_ktensor_get_labels(const td_ktensor *ktensor, int32_t mode, char *buf, int64_t cap,
                                       int64_t *needed);

/** The entries that lead a component in a mode: those of largest magnitude in that column of the factor, largest first,
 *  equal ones in the order of their indices; zeros do not lead. At most n of them; indices (counted from 0), values
 *  (with their signs) and found (how many there are) may each be NULL. Errors: TD_ERR_SHAPE (mode, component, n). */
TD_API td_status td_ktensor_get_leading(const td_ktensor *ktensor, int32_t mode, int64_t component, int64_t n,
                                        int64_t *indices, double *values, int64_t *found);

/** @} */

/* ---- MTTKRP ------------------------------------------------------------------------------------------------------ */
/** @defgroup td_mttkrp MTTKRP
 *  @{ */

/** out = X_(mode) (A_{N-1} (.) ... (.) A_{mode+1} (.) A_{mode-1} (.) ... (.) A_0), (.) the Khatri-Rao product
 *  (Kolda and Bader 2009, section 2.6; sparse: Bader and Kolda 2007). What it costs in each format stands
 *  in docs/formats.md.
 *
 *  factors[order]  factors[m] is dims[m] x rank, column-major with leading dimension ld[m], of the tensor's value
 *                  type; factors[mode] is not read and may be NULL
 *  out             dims[mode] x rank, column-major with leading dimension ld_out, overwritten; must not overlap a
 *                  factor
 *  space           where factors[m] and out live; ld and the array of pointers are on the host
 *
 *  Errors: TD_ERR_SHAPE (mode, rank, ld), TD_ERR_ARGUMENT (a factor is not finite), TD_ERR_UNSUPPORTED (space),
 *  TD_ERR_NUMERICAL (the result is beyond the largest number of the tensor's type). */
TD_API td_status td_mttkrp(td_context *context, const td_tensor *tensor, int32_t mode, int64_t rank,
                           const void *const *factors, const int64_t *ld, void *out, int64_t ld_out, td_space space);

/** The same with the factors of a ktensor of the tensor's dims and value type; its weights are not used. Saves the
 *  copy into td's own layout. Errors: also TD_ERR_TYPE if the types differ. */
TD_API td_status td_mttkrp_ktensor(td_context *context, const td_tensor *tensor, int32_t mode,
                                   const td_ktensor *ktensor, void *out, int64_t ld_out, td_space space);

/** @} */

/* ---- CP-ALS ------------------------------------------------------------------------------------------------------ */
/** @defgroup td_cpals CP-ALS and its report
 *  @{ */

/** Called on the thread that called td_cpals after each iteration, with a report of the run so far that is valid until
 *  the callback returns. Gives 0 to go on and anything else to stop with a valid result. It must return (no longjmp;
 *  it may end its thread with pthread_exit), and must not use the context of the run. An exception of C++ that leaves
 * it ends the run as TD_ERR_INTERNAL with the exception's text; the report that was lent ends then, too. */
typedef int32_t (*td_progress_fn)(const td_report *so_far, void *user);

/** Fits a ktensor of rank `rank` to a tensor by alternating least squares (Kolda and Bader 2009, section 3.4).
 *
 *  init      a ktensor of the same dims and rank to start from (any type; its weights go into the first factor), or
 *            NULL for the start that option "init" names
 *  options   may be NULL; scope "cpals"
 *  progress  may be NULL; user is passed on to it
 *  model     the result, of the tensor's value type, normalized and arranged (options "arrange", "fixsigns")
 *  report    the run's report; report may be NULL
 *
 *  Returns TD_OK, or TD_STOPPED if progress asked to stop. Reaching max_iters or max_seconds is TD_OK; the report's
 *  "stop_reason" tells. Where max_seconds pass while the start "nvecs" of option "init" is made, one iteration follows
 *  from the start as far as it has come. Defaults are those of Tensor Toolbox's cp_als.
 *  Errors: TD_ERR_SHAPE (rank < 1, init does not fit), TD_ERR_ARGUMENT (init is zero in every entry of a factor that is
 *  used before it is computed, or comes with option "resume"), TD_ERR_OPTION_RANGE, TD_ERR_IO (the file to resume from
 *  holds what no run leaves; the checkpoint's place cannot be written to, which is tried before the first iteration, or
 *  holds a file that is no checkpoint, which would be lost), TD_ERR_NUMERICAL (the factors overflowed). A checkpoint
 *  that cannot be written later, as when a disk is full, does not end the run: the context's log hears why, and the
 *  report's "checkpoint_error" says so. */
TD_API td_status td_cpals(td_context *context, const td_tensor *tensor, int64_t rank, const td_ktensor *init,
                          const td_options *options, td_progress_fn progress, void *user, td_ktensor **model,
                          td_report **report);

/** A copy of its own; also of a report that was lent to a progress callback, to keep it beyond the call. */
TD_API td_status td_report_copy(const td_report *report, td_report **out);

/** Ends a report. NULL is allowed. */
TD_API void td_report_destroy(td_report *report);

/** "iterations", "converged" (1 or 0), "order", "rank", "workers", "threads", "exchanged_bytes" (that this process has
 *  sent to others in this run's iterations, of rows of factors), "resumed_from" (iterations done before this run),
 *  "effective_rank" (smallest of the last iteration's solves), "exact_residuals" (iterations whose residual was
 *  computed entry by entry). Errors: TD_ERR_OPTION_UNKNOWN. */
TD_API td_status td_report_get_i64(const td_report *report, const char *key, int64_t *value);

/** "fit", "explained", "relative", "residual" (as in td_ktensor_fit, of the last iteration), "fit_error" (a bound of
 *  what rounding did to the fit), "fit_change", "fit_growth" (what the fit has still to gain if its changes go on
 * shrinking as the last ones did; 0 where they do not tell), "condition" (largest condition number of the last
 * iteration's solves, the normal equations' or with option "solve" = qr that of the Khatri-Rao product; at most 2^52),
 * "norm" (of the tensor), "seconds", "seconds.init", "seconds.mttkrp", "seconds.solve", "seconds.fit". Errors:
 * TD_ERR_OPTION_UNKNOWN, TD_ERR_NUMERICAL (a norm or a residual beyond f64). */
TD_API td_status td_report_get_f64(const td_report *report, const char *key, double *value);

/** "stop_reason" ("tol", "max_iters", "max_seconds", "callback"), "format", "devices", "init", "checkpoint_error" (why
 *  the last checkpoint could not be written; empty if it was, or none was asked for), "creeping" (where the run ended
 * by option "tol" and "fit_growth" is above it: a sentence that says how fast the fit still grew and what to try; else
 *  empty).
 *  Text as in td_options_get_str. Errors: TD_ERR_OPTION_UNKNOWN. */
TD_API td_status td_report_get_str(const td_report *report, const char *key, char *buf, int64_t cap, int64_t *needed);

/** A value per iteration: "fit", "fit_error", "fit_change", "residual", "seconds" (since the start); "effective_rank"
 *  and "condition" have one value per solve, in the order of updates; "mttkrp_seconds" has order values an iteration,
 *  mode after mode: what MTTKRP took (on the first worker; on a GPU by the GPU's clock), 0 for fixed modes.
 *
 *  With option 'breakdown' = 1, else empty: "worker.entries" and "worker.rows", order values a worker, that it sums and
 *  owns of each mode; "worker.iteration_seconds", for each iteration of this run and each worker four values, which add
 *  up to the iteration: computing, waiting for copies between host and device, exchanging with other workers, waiting
 *  for these or, on a device, for the host; "worker.mttkrp_seconds", the same of the MTTKRPs of all modes alone.
 *
 *  Copies at most cap numbers and sets *n (may be NULL) to how many there are. Errors: TD_ERR_OPTION_UNKNOWN,
 *  TD_ERR_NUMERICAL (a residual beyond f64). */
TD_API td_status td_report_get_series(const td_report *report, const char *key, double *values, int64_t cap,
                                      int64_t *n);

/** Writes a run that is over as a page to look at: what was decomposed, the fit by iteration, weights, each component
 *  as a drawing a mode, what to know before trusting it (components that are alike or cancel each other, lost rank),
 *  what the plan chose and what that took. A page is one file of HTML that needs no network; the same facts without
 *  drawings are JSON. The name's ending says which: .html, .htm or .json. The file appears under its name when it is
 *  whole.
 *
 *  context  that of the run: the plan is made for it
 *  tensor   what was decomposed; NULL if it is not at hand any more: then the page has no plan
 *  model    the run's result, also when it was changed since; of the report's order and rank and the tensor's dims
 *  options  may be NULL; scope "report", and those of the run, which the page shows
 *
 *  Of a model of more than 64 components the first 64 are drawn; of a factor of many rows those of largest magnitude,
 *  or where rows lie along an axis means of neighbours. It takes a copy of the model. Errors: TD_ERR_SHAPE (model),
 *  TD_ERR_UNSUPPORTED (another ending), TD_ERR_OPTION_RANGE ("mode_names", "line_modes"), TD_ERR_IO. */
TD_API td_status td_report_write(td_context *context, const td_report *report, const td_tensor *tensor,
                                 const td_ktensor *model, const td_options *options, const char *path);

/** @} */

/* ---- Plan: what would be done, before it is done ----------------------------------------------------------------- */
/** @defgroup td_plan Plans
 *  @{ */

/** Predicts what td would do with a sparse tensor of these sizes that is not there yet, and with CP-ALS at a rank:
 * the format and modes that share partial products, kernel and conflict policy of MTTKRP in each mode, each worker's
 * load, bytes on host and device, and seconds. Nothing is allocated in proportion to the tensor.
 *
 *  order, dims, nnz, value_type   as in td_tensor_create; entries are taken to be different and spread evenly
 *  options     may be NULL; scopes "tensor", "cpals" and "plan". What an option forces, the plan says
 *
 *  A plan can be made for what does not fit: then "fits" is 0, where td_tensor_create or td_cpals would give
 *  TD_ERR_HOST_MEMORY. Seconds are predicted from rates that are measured once a process (in about a tenth of a second)
 *  or given by options "read_rate", "operation_rate" and "link_rate"; they tell the order of magnitude. They are not
 *  known where too little memory is free to measure with (128 MiB, or 16 MiB a core). Option "workers" plans for more
 *  devices than there are.
 *  Errors: TD_ERR_SHAPE (order, dims, nnz, rank), TD_ERR_TYPE, TD_ERR_UNSUPPORTED and TD_ERR_OPTION_RANGE as in
 *  td_tensor_create. */
TD_API td_status td_plan_create(td_context *context, int32_t order, const int64_t *dims, int64_t nnz,
                                td_type value_type, int64_t rank, const td_options *options, td_plan **out);

/** The same for a dense tensor. */
TD_API td_status td_plan_create_dense(td_context *context, int32_t order, const int64_t *dims, td_type value_type,
                                      int64_t rank, const td_options *options, td_plan **out);

/** The same for a tensor that is there: how it is stored is settled and its bytes are exact. Of a tensor that processes
 *  share it is a plan of this process, by its part. */
TD_API td_status td_plan_create_for_tensor(td_context *context, const td_tensor *tensor, int64_t rank,
                                           const td_options *options, td_plan **out);

/** The same for the tensor in a file, which is read but not stored: empty rows and cells are counted in a copy of the
 *  coordinates that takes 8 or 16 bytes an entry. options: also scope "read". Errors: also those of td_tensor_read. */
TD_API td_status td_plan_read(td_context *context, const char *path, int64_t rank, const td_options *options,
                              td_plan **out);

/** Another handle of the same plan, as td_tensor_share. */
TD_API td_status td_plan_share(const td_plan *plan, td_plan **out);

/** Ends a plan. NULL is allowed. */
TD_API void td_plan_destroy(td_plan *plan);

/** "order", "nnz", "sparse" (1 or 0), "rank", "workers", "threads", "sweeps" (after which what a dense tensor is read
 *  for begins again: 1, or more where partial products serve several sweeps), "fits" (1 or 0), and bytes:
 *    host_bytes.tensor      of the stored tensor, as td_tensor_get_i64 gives under "bytes"
 *    host_bytes.building    needed besides while it is made, at the worst moment, without the caller's arrays
 *    host_bytes.solver      needed besides by CP-ALS, at the worst moment
 *    host_bytes.peak        tensor + the larger of building and solver
 *    host_bytes.available   what there is (2^63 - 1: not known), for what is not there yet
 *    device_bytes.tensor, .building, .solver, .peak   the same on all devices together; 0 on a CPU
 *    device_bytes.streamed  of the tensor, from the host in every sweep; 0 on a CPU
 *    device_bytes.exchanged that each of several GPUs receives from the others in an iteration of CP-ALS
 *    host_bytes.exchanged   that this process sends to others, and receives, in an iteration, of rows of factors; 0
 *                           where the tensor is not shared
 *  "processes" that share the tensor, or that option "processes" plans for: then bytes, rows and "load" are of one of
 *  them, the mean, "nnz" is of all. Of an iteration: "exchange_messages" that a process sends with its rows,
 *  "exchange_calls" of the communicator's functions. Of a shape: "scales_to", the most of 1, 2, 4, ... processes up to
 *  which exchange takes no longer than work, and "fastest_processes" of them; 0: not known.
 *  Errors: TD_ERR_OPTION_UNKNOWN. */
TD_API td_status td_plan_get_i64(const td_plan *plan, const char *key, int64_t *value);

/** Seconds, 0 where they are not known: "seconds.iteration" (of CP-ALS), "seconds.mttkrp", "seconds.solve" and
 *  "seconds.exchange" (between several GPUs or processes, not beside MTTKRP), which it consists of. What they are based
 * on: "rate.read" (bytes a second from memory), "rate.near_rows", "rate.middle_rows" and "rate.far_rows" (bytes a
 * second of factor rows in no order, from a first-level and a second-level cache and from memory), "rate.operations"
 * (f64 floating-point operations a second). Errors: TD_ERR_OPTION_UNKNOWN. */
TD_API td_status td_plan_get_f64(const td_plan *plan, const char *key, double *value);

/** "format", "groups" (as td_tensor_get_str), "rows" (which take part), "tiles" (how many of each group's copy),
 *  "conflicts" (the policy), "precision" (of values, sums and factor rows), "sharding" (of workers), "exchange"
 *  (between several GPUs: "peer", "nccl" or "host"; of other workers "none"), "dense_kernel" (of a GPU, as the option;
 *  "none" for a sparse tensor), each also with ".why", which names the option that forced it; "kernel.0", "kernel.1",
 *  ... and "conflicts.0", ...: how MTTKRP in a mode goes over the entries, and how sums into one row are kept apart
 *  (empty where the backend does not say); "devices"; "solver" (what "host_bytes.solver" consists of); "rate.why";
 *  "assumptions" (a line each). Text as in td_options_get_str. Errors: TD_ERR_OPTION_UNKNOWN. */
TD_API td_status td_plan_get_str(const td_plan *plan, const char *key, char *buf, int64_t cap, int64_t *needed);

/** A value per mode: "dims", "rows" (how many take part), "mttkrp_seconds", "workspace_bytes" (of MTTKRP's kernels,
 *  on each device), "imbalance" (largest load / mean load - 1), "split_rows" (rows that several workers sum),
 *  "imbalance_unsplit" (what the imbalance is if no row may be split);
 *  "load" has a value per worker and mode, mode after mode: the stored entries that it works on. "scaling_seconds":
 *  of an iteration with 1, 2, 4, ... processes, of a shape that is planned for several. Copies at most cap numbers and
 *  sets *n (may be NULL) to how many there are. Errors: TD_ERR_OPTION_UNKNOWN. */
TD_API td_status td_plan_get_series(const td_plan *plan, const char *key, double *values, int64_t cap, int64_t *n);

/** The whole plan for people, some lines with the reason of each choice. Text as in td_options_get_str. */
TD_API td_status td_plan_describe(const td_plan *plan, char *buf, int64_t cap, int64_t *needed);

/** @} */

/* ---- Files ------------------------------------------------------------------------------------------------------- */
/** @defgroup td_files Files
 *  @{ */

/** Reads a tensor: coordinate text in the dialects of FROSTT, ParTI, Tensor Toolbox (also its dense "tensor"), GenTen
 *  and Matrix Market (also its dense "array"), plain or compressed with gzip; td's binary format; NumPy .npy (dense).
 *  What a file is, is found from its content; options "dialect" and "index_base" settle what content leaves open, and
 *  a file that stays ambiguous is refused. The decision goes to the context's log and stands in td_tensor_get_str(x,
 *  "source"). A table (CSV, TSV and the like, plain or gzip) is read where option "columns" names those of its columns
 *  that become modes: their names become labels (td_tensor_get_labels), "value" is the column of the values, or each
 *  line counts 1, and lines with the same names are duplicates as in td_tensor_create. options (may be NULL): scopes
 * "read" and "tensor". A file may be shortened or rewritten by others meanwhile: it is not mapped, and that it changed
 * is TD_ERR_IO wherever its size, its time or its content shows it. Errors: TD_ERR_IO (missing, a directory, truncated,
 * corrupt, changed, ragged: names the line), TD_ERR_INDEX, TD_ERR_OPTION_RANGE (a column that the table does not have,
 * a pattern that is none), TD_ERR_SHAPE, TD_ERR_UNSUPPORTED (complex numbers), TD_ERR_HOST_MEMORY (before the content
 * is read). */
TD_API td_status td_tensor_read(td_context *context, const char *path, const td_options *options, td_tensor **out);

/** Writes a tensor in the file format of option "file_format"; "auto" goes by the name: .tns FROSTT text, .txt Tensor
 *  Toolbox text, .tdb td's binary, .npy NumPy (dense), each text also with .gz. Text reads back exactly. The file
 *  appears under its name only when it is whole; a file of that name is replaced, and its permissions, owner and group
 *  are kept as far as the process may. Where a limit on the size of files is set, SIGXFSZ ends a process that does not
 *  ignore it: td leaves signals alone. options may be NULL: scope "write".
 *  Errors: TD_ERR_IO (the file system's reason), TD_ERR_UNSUPPORTED (this format cannot hold this tensor). */
TD_API td_status td_tensor_write(const td_tensor *tensor, const char *path, const td_options *options);

/** Reads a ktensor from text as Tensor Toolbox and pyttb write it, plain or gzip; a folder with SPLATT's lambda.mat
 *  and mode1.mat ... ; or td's binary format. Errors: as td_tensor_read. */
TD_API td_status td_ktensor_read(td_context *context, const char *path, td_ktensor **out);

/** Writes a ktensor in the file format of option "file_format"; "auto" goes by the name: .tdb td's binary, anything
 *  else Tensor Toolbox text (.gz compressed), but for .tns and .npy, which name files of tensors. "splatt" writes
 *  lambda.mat, mode1.mat ... and "npy" weights.npy, factor0.npy ... into the folder `path`, which is made if it is not
 *  there. Of a model in blocks it is collective: td's binary format is written by all processes, each its rows, into
 *  one file, which all can reach and which appears when all have written; the others by process 0, to which each sends
 *  its rows in turn. Errors: as td_tensor_write. */
TD_API td_status td_ktensor_write(const td_ktensor *ktensor, const char *path, const td_options *options);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
