/* Names of modes and labels of indices: set, given back, shared, carried to models and through files, and refused. */
#define _DEFAULT_SOURCE /* mkstemps */
#include "check.h"

#include <unistd.h>

static const char months[] = "Jan\0Feb\0M\xC3\xA4rz"; /* the compiler adds the last NUL */
static const char users[] = "alice\0bob";
static char path[64];

static int is_text(td_status status, const char *came, const char *expected) {
  return status == TD_OK && strcmp(came, expected) == 0;
}

/* Checks that a tensor or a ktensor has the labels of this test. */
#define HAS_LABELS(noun, handle)                                                                                       \
  do {                                                                                                                 \
    char text_[64];                                                                                                    \
    int64_t needed_ = -1;                                                                                              \
    CHECK(is_text(noun##_get_mode_name(handle, 0, text_, 64, &needed_), text_, "user") && needed_ == 5);               \
    CHECK(is_text(noun##_get_mode_name(handle, 1, text_, 64, NULL), text_, ""));                                       \
    CHECK(is_text(noun##_get_label(handle, 0, 1, text_, 64, NULL), text_, "bob"));                                     \
    CHECK(is_text(noun##_get_label(handle, 1, 2, text_, 64, NULL), text_, "M\xC3\xA4rz"));                             \
    CHECK(noun##_get_labels(handle, 1, NULL, 0, &needed_) == TD_OK && needed_ == (int64_t)sizeof months);              \
    CHECK(noun##_get_labels(handle, 1, text_, 64, NULL) == TD_OK && memcmp(text_, months, sizeof months) == 0);        \
    memset(text_, '#', sizeof text_);                                                                                  \
    CHECK(noun##_get_labels(handle, 0, text_, 3, &needed_) == TD_OK && needed_ == (int64_t)sizeof users);              \
    CHECK(memcmp(text_, "ali#", 4) == 0); /* a text cut short */                                                       \
  } while (0)

#define HAS_NONE(noun, handle)                                                                                         \
  do {                                                                                                                 \
    char text_[8];                                                                                                     \
    int64_t needed_ = -1;                                                                                              \
    CHECK(is_text(noun##_get_mode_name(handle, 0, text_, 8, NULL), text_, ""));                                        \
    CHECK(is_text(noun##_get_label(handle, 1, 2, text_, 8, NULL), text_, ""));                                         \
    CHECK(noun##_get_labels(handle, 1, NULL, 0, &needed_) == TD_OK && needed_ == 0);                                   \
  } while (0)

#define REFUSES(noun, handle)                                                                                          \
  do {                                                                                                                 \
    REFUSED(TD_ERR_SHAPE, "mode = 2", "0 .. 1", noun##_set_mode_name(handle, 2, "x"));                                 \
    REFUSED(TD_ERR_SHAPE, "mode = -1", "0 .. 1", noun##_get_mode_name(handle, -1, NULL, 0, NULL));                     \
    REFUSED(TD_ERR_SHAPE, "mode = 2", "0 .. 1", noun##_set_labels(handle, 2, users, sizeof users));                    \
    REFUSED(TD_ERR_SHAPE, "mode = 2", "0 .. 1", noun##_get_label(handle, 2, 0, NULL, 0, NULL));                        \
    REFUSED(TD_ERR_SHAPE, "mode = 2", "0 .. 1", noun##_get_labels(handle, 2, NULL, 0, NULL));                          \
    REFUSED(TD_ERR_INDEX, "index = 2", "0 .. 1", noun##_get_label(handle, 0, 2, NULL, 0, NULL));                       \
    REFUSED(TD_ERR_INDEX, "index = -1", "0 .. 1", noun##_get_label(handle, 0, -1, NULL, 0, NULL));                     \
    REFUSED(TD_ERR_ARGUMENT, "not UTF-8", "\\xff", noun##_set_mode_name(handle, 0, "\xff"));                           \
    REFUSED(TD_ERR_ARGUMENT, "index 1", "\\xff", noun##_set_labels(handle, 0, "a\0\xff", 4));                          \
    REFUSED(TD_ERR_ARGUMENT, "1 label", "expected 2", noun##_set_labels(handle, 0, "a\0b", 3));                        \
    REFUSED(TD_ERR_ARGUMENT, "2 bytes", "2 labels", noun##_set_labels(handle, 0, "a\0b\0c", 6));                       \
    REFUSED(TD_ERR_ARGUMENT, "bytes = -1", "", noun##_set_labels(handle, 0, "a", -1));                                 \
    REFUSED(TD_ERR_ARGUMENT, "bytes = 4", "", noun##_set_labels(handle, 0, NULL, 4));                                  \
    REFUSED(TD_ERR_ARGUMENT, "cap = 9", "", noun##_get_labels(handle, 0, NULL, 9, NULL));                              \
  } while (0)

static td_context *context;

static td_tensor *labelled_tensor(void) {
  const int64_t dims[2] = {2, 3};
  const double values[6] = {1, 2, 3, 4, 5, 7};
  td_tensor *x = NULL;
  DONE(td_tensor_create_dense(context, 2, dims, NULL, TD_F64, values, TD_HOST, NULL, &x));
  HAS_NONE(td_tensor, x);
  DONE(td_tensor_set_mode_name(x, 0, "user"));
  DONE(td_tensor_set_labels(x, 0, users, sizeof users));
  DONE(td_tensor_set_labels(x, 1, months, sizeof months));
  return x;
}

static void labels_go_with_handles(void) {
  td_tensor *x = labelled_tensor(), *other = NULL;
  HAS_LABELS(td_tensor, x);
  REFUSES(td_tensor, x);
  HAS_LABELS(td_tensor, x); /* a refusal changes nothing */
  DONE(td_tensor_share(x, &other));
  DONE(td_tensor_set_mode_name(x, 0, NULL));
  DONE(td_tensor_set_labels(x, 0, NULL, 0));
  DONE(td_tensor_set_labels(x, 1, NULL, 0));
  HAS_NONE(td_tensor, x);
  HAS_LABELS(td_tensor, other);
  td_tensor_destroy(x);
  HAS_LABELS(td_tensor, other);
  td_tensor_destroy(other);
}

static void labels_go_through_files(td_tensor *x, td_ktensor *k) {
  td_tensor *read = NULL;
  td_ktensor *model = NULL;
  DONE(td_tensor_write(x, path, NULL));
  DONE(td_tensor_read(context, path, NULL, &read));
  HAS_LABELS(td_tensor, read);
  DONE(td_ktensor_write(k, path, NULL));
  DONE(td_ktensor_read(context, path, &model));
  HAS_LABELS(td_ktensor, model);
  td_tensor_destroy(read);
  td_ktensor_destroy(model);
}

static void models_have_labels(void) {
  td_tensor *x = labelled_tensor(), *bare = NULL;
  td_ktensor *model = NULL, *copy = NULL, *from = NULL;
  const int64_t dims[2] = {2, 3};
  const double values[6] = {1, 2, 3, 4, 5, 7};
  DONE(td_cpals(context, x, 1, NULL, NULL, NULL, NULL, &model, NULL));
  HAS_LABELS(td_ktensor, model);
  REFUSES(td_ktensor, model);
  DONE(td_ktensor_copy(model, &copy));
  DONE(td_ktensor_set_mode_name(model, 0, "someone"));
  HAS_LABELS(td_ktensor, copy);
  HAS_LABELS(td_tensor, x);
  labels_go_through_files(x, copy);
  DONE(td_tensor_create_dense(context, 2, dims, NULL, TD_F64, values, TD_HOST, NULL, &bare));
  DONE(td_cpals(context, bare, 1, copy, NULL, NULL, NULL, &from, NULL));
  HAS_LABELS(td_ktensor, from); /* init's */
  td_ktensor_destroy(from);
  DONE(td_cpals(context, bare, 1, NULL, NULL, NULL, NULL, &from, NULL));
  HAS_NONE(td_ktensor, from);
  DONE(td_ktensor_set_labels(from, 1, months, sizeof months)); /* where there were none */
  DONE(td_ktensor_set_labels(from, 0, users, sizeof users));
  DONE(td_ktensor_set_mode_name(from, 0, "user"));
  HAS_LABELS(td_ktensor, from);
  td_ktensor_destroy(from);
  td_ktensor_destroy(copy);
  td_ktensor_destroy(model);
  td_tensor_destroy(bare);
  td_tensor_destroy(x);
}

static void leaders_lead(void) {
  const int64_t dims[2] = {6, 2};
  const double column[12] = {9, 9, 9, 9, 9, 9, 0.5, -2, 0, 2, 1, -0.25}; /* the second one is looked at */
  int64_t indices[6], found = -1;
  double values[6];
  td_ktensor *k = NULL;
  DONE(td_ktensor_create(context, 2, dims, 2, TD_F64, &k));
  DONE(td_ktensor_set_factor(k, 0, column, 6, TD_HOST));
  DONE(td_ktensor_get_leading(k, 0, 1, 3, indices, values, &found));
  CHECK(found == 3 && indices[0] == 1 && indices[1] == 3 && indices[2] == 4);
  CHECK(values[0] == -2 && values[1] == 2 && values[2] == 1);
  DONE(td_ktensor_get_leading(k, 0, 1, 6, indices, NULL, &found));
  CHECK(found == 5 && indices[3] == 0 && indices[4] == 5); /* the zero does not lead */
  DONE(td_ktensor_get_leading(k, 0, 0, 2, indices, NULL, NULL));
  CHECK(indices[0] == 0 && indices[1] == 1);
  DONE(td_ktensor_get_leading(k, 1, 0, 2, NULL, values, &found));
  CHECK(found == 0); /* a column of zeros */
  DONE(td_ktensor_get_leading(k, 0, 1, 0, NULL, NULL, &found));
  CHECK(found == 0);
  REFUSED(TD_ERR_SHAPE, "mode = 2", "0 .. 1", td_ktensor_get_leading(k, 2, 0, 1, NULL, NULL, NULL));
  REFUSED(TD_ERR_SHAPE, "component = 2", "0 .. 1", td_ktensor_get_leading(k, 0, 2, 1, NULL, NULL, NULL));
  REFUSED(TD_ERR_SHAPE, "n = -1", "n >= 0", td_ktensor_get_leading(k, 0, 0, -1, NULL, NULL, NULL));
  td_ktensor_destroy(k);
}

int main(void) {
  const int descriptor = mkstemps(strcpy(path, "/tmp/td_labels_XXXXXX.tdb"), 4);
  CHECK(descriptor >= 0 && close(descriptor) == 0);
  DONE(td_context_create("cpu:2", NULL, &context));
  labels_go_with_handles();
  models_have_labels();
  leaders_lead();
  td_context_destroy(context);
  CHECK(unlink(path) == 0);
  return check_result();
}
