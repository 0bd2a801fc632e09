// The LAPACK routines that td calls: Fortran, 32-bit integers, lengths of character arguments at the end.
#pragma once

#include <cstddef>

extern "C" {
void dpotf2_(const char *uplo, const int *n, double *a, const int *lda, int *info, std::size_t);
void dtrti2_(const char *uplo, const char *diag, const int *n, double *a, const int *lda, int *info, std::size_t,
             std::size_t);
void dlauu2_(const char *uplo, const int *n, double *a, const int *lda, int *info, std::size_t);
void dpotrf_(const char *uplo, const int *n, double *a, const int *lda, int *info, std::size_t uplo_length);
void dtrtri_(const char *uplo, const char *diag, const int *n, double *a, const int *lda, int *info, std::size_t,
             std::size_t);
void dlauum_(const char *uplo, const int *n, double *a, const int *lda, int *info, std::size_t);
double dlansy_(const char *norm, const char *uplo, const int *n, const double *a, const int *lda, double *work,
               std::size_t norm_length, std::size_t uplo_length);
void dgeqrf_(const int *m, const int *n, double *a, const int *lda, double *tau, double *work, const int *lwork,
             int *info);
void dorgqr_(const int *m, const int *n, const int *k, double *a, const int *lda, const double *tau, double *work,
             const int *lwork, int *info);
void dgesvd_(const char *jobu, const char *jobvt, const int *m, const int *n, double *a, const int *lda, double *s,
             double *u, const int *ldu, double *vt, const int *ldvt, double *work, const int *lwork, int *info,
             std::size_t, std::size_t);
void dsyev_(const char *jobz, const char *uplo, const int *n, double *a, const int *lda, double *w, double *work,
            const int *lwork, int *info, std::size_t jobz_length, std::size_t uplo_length);
void dsyevd_(const char *jobz, const char *uplo, const int *n, double *a, const int *lda, double *w, double *work,
             const int *lwork, int *iwork, const int *liwork, int *info, std::size_t jobz_length,
             std::size_t uplo_length);
}
