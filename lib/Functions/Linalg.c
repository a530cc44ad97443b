/*
 * Linalg.c - factors of matrices: LU, Cholesky, QR, eigenvalues of symmetric ones, singular values.
 *
 * Operands are [B, ..] of f32 or f64; all is computed in f64, a matrix at a time. Signs of Q and R are LAPACK's, those
 * of eigenvectors and singular vectors are free. Sources: Golub and Van Loan, "Matrix Computations", sections 3.4, 4.2,
 * 5.2 and 8.5; Demmel and Veselic, "Jacobi's method is more accurate than QR".
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "tc/Functions/Store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SWEEPS = 60 };

/* Matrix `index` of so many elements as f64. */
static void load(const tcrt_operand_t *from, int64_t index, int64_t count, double *to) {
  if (from->dtype == TCRT_DTYPE_F64)
    memcpy(to, (const double *)from->data + index * count, (size_t)count * sizeof(double));
  else
    for (int64_t i = 0; i < count; ++i)
      to[i] = ((const float *)from->data)[index * count + i];
}

static void save(const tcrt_operand_t *to, int64_t index, int64_t count, const double *from) {
  if (to->dtype == TCRT_DTYPE_F64)
    memcpy((double *)to->data + index * count, from, (size_t)count * sizeof(double));
  else
    for (int64_t i = 0; i < count; ++i)
      ((float *)to->data)[index * count + i] = (float)from[i];
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static double *allocate(const tcrt_services_t *services, int64_t count) {
  double *buffer = calloc((size_t)count + 1, sizeof(double));
  if (!buffer)
    services->fail(TCRT_ERROR_MACHINE, "no memory left for the factors of a matrix");
  return buffer;
}

/* ---- LU ---- */

/* Overwrites a [m, n] with its factors; row k was exchanged with row pivots[k]. Returns the number, from 1 on, of the
 * first pivot that is 0; or 0. */
static int64_t factor_lu(double *a, int64_t m, int64_t n, int64_t *pivots) {
  int64_t singular = 0;
  for (int64_t k = 0; k < least(m, n); ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < m; ++i)
      if (fabs(a[i * n + k]) > fabs(a[best * n + k]))
        best = i;
    pivots[k] = best;
    if (best != k)
      for (int64_t j = 0; j < n; ++j) {
        const double other = a[k * n + j];
        a[k * n + j] = a[best * n + j];
        a[best * n + j] = other;
      }
    const double pivot = a[k * n + k];
    if (pivot == 0) {
      singular = singular ? singular : k + 1;
      continue;
    }
    for (int64_t i = k + 1; i < m; ++i) {
      const double factor = a[i * n + k] / pivot;
      a[i * n + k] = factor;
      for (int64_t j = k + 1; j < n; ++j)
        a[i * n + j] -= factor * a[k * n + j];
    }
  }
  return singular;
}

/* linalg_lu(a [B, m, n]) -> factors [B, m, n], pivots [B, min(m, n)] of i64 from 0 on, info [B] of i64 */
tcrt_status_t tcrt_linalg_lu(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call) {
  (void)store;
  const int64_t count = call->operands[0].dims[0], m = call->operands[0].dims[1], n = call->operands[0].dims[2];
  double *a = allocate(services, m * n);
  if (!a)
    return TCRT_ERROR_MACHINE;
  for (int64_t i = 0; i < count; ++i) {
    load(&call->operands[0], i, m * n, a);
    ((int64_t *)call->results[2].data)[i] = factor_lu(a, m, n, (int64_t *)call->results[1].data + i * least(m, n));
    save(&call->results[0], i, m * n, a);
  }
  free(a);
  return TCRT_OK;
}

/* Replaces b [n, k] by the solution of a triangular system; `is_unit`: the diagonal is 1. */
static void solve_triangular(const double *a, int64_t n, double *b, int64_t k, int is_upper, int is_unit) {
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = is_upper ? n - 1 - step : step;
    double *row = b + i * k;
    for (int64_t j = is_upper ? i + 1 : 0; j < (is_upper ? n : i); ++j) {
      const double factor = a[i * n + j];
      for (int64_t c = 0; c < k; ++c)
        row[c] -= factor * b[j * k + c];
    }
    for (int64_t c = 0; c < k && !is_unit; ++c)
      row[c] /= a[i * n + i];
  }
}

/* linalg_solve(a [B, n, n], b [B, n, k]) -> x [B, n, k], info [B] of i64: 0, or the number of the first pivot of 0 */
tcrt_status_t tcrt_linalg_solve(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call) {
  (void)store;
  const int64_t count = call->operands[0].dims[0], n = call->operands[0].dims[1], k = call->operands[1].dims[2];
  double *a = allocate(services, n * n + n * k);
  int64_t *pivots = malloc(((size_t)n + 1) * sizeof *pivots);
  if (!a || !pivots) {
    free(a), free(pivots);
    return services->fail(TCRT_ERROR_MACHINE, "no memory left for the factors of a matrix");
  }
  double *b = a + n * n;
  for (int64_t i = 0; i < count; ++i) {
    load(&call->operands[0], i, n * n, a);
    load(&call->operands[1], i, n * k, b);
    ((int64_t *)call->results[1].data)[i] = factor_lu(a, n, n, pivots);
    for (int64_t row = 0; row < n; ++row)
      for (int64_t c = 0; c < k && pivots[row] != row; ++c) {
        const double other = b[row * k + c];
        b[row * k + c] = b[pivots[row] * k + c];
        b[pivots[row] * k + c] = other;
      }
    solve_triangular(a, n, b, k, /*is_upper=*/0, /*is_unit=*/1);
    solve_triangular(a, n, b, k, /*is_upper=*/1, /*is_unit=*/0);
    save(&call->results[0], i, n * k, b);
  }
  free(a), free(pivots);
  return TCRT_OK;
}

/* linalg_solve_triangular(a [B, n, n], b [B, n, k], is_upper, is_unit) -> x [B, n, k] */
tcrt_status_t tcrt_linalg_solve_triangular(const tcrt_services_t *services, tcrt_store_t *store,
                                           const tcrt_call_t *call) {
  (void)store;
  const int64_t count = call->operands[0].dims[0], n = call->operands[0].dims[1], k = call->operands[1].dims[2];
  const int is_upper = *(const int64_t *)call->operands[2].data != 0;
  const int is_unit = *(const int64_t *)call->operands[3].data != 0;
  double *a = allocate(services, n * n + n * k);
  if (!a)
    return TCRT_ERROR_MACHINE;
  for (int64_t i = 0; i < count; ++i) {
    load(&call->operands[0], i, n * n, a);
    load(&call->operands[1], i, n * k, a + n * n);
    solve_triangular(a, n, a + n * n, k, is_upper, is_unit);
    save(&call->results[0], i, n * k, a + n * n);
  }
  free(a);
  return TCRT_OK;
}

/* ---- Cholesky ---- */

/* linalg_cholesky(a [B, n, n], of which the lower triangle is read) -> L [B, n, n], info [B] of i64: 0, or the number
 * of the first leading minor that is not positive */
tcrt_status_t tcrt_linalg_cholesky(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call) {
  (void)store;
  const int64_t count = call->operands[0].dims[0], n = call->operands[0].dims[1];
  double *a = allocate(services, n * n);
  if (!a)
    return TCRT_ERROR_MACHINE;
  for (int64_t i = 0; i < count; ++i) {
    int64_t info = 0;
    load(&call->operands[0], i, n * n, a);
    for (int64_t row = 0; row < n; ++row) {
      for (int64_t column = 0; column <= row; ++column) {
        double sum = a[row * n + column];
        for (int64_t j = 0; j < column; ++j)
          sum -= a[row * n + j] * a[column * n + j];
        if (row == column && !(sum > 0) && !info)
          info = row + 1;
        a[row * n + column] = row == column ? sqrt(sum) : sum / a[column * n + column];
      }
      for (int64_t column = row + 1; column < n; ++column)
        a[row * n + column] = 0;
    }
    ((int64_t *)call->results[1].data)[i] = info;
    save(&call->results[0], i, n * n, a);
  }
  free(a);
  return TCRT_OK;
}

/* ---- QR ---- */

/* x -= tau v (v' x) for columns from `first` on of x [m, n], v [m - top] from row `top` on. */
static void reflect(double *x, int64_t m, int64_t n, int64_t first, int64_t top, const double *v, double tau) {
  for (int64_t column = first; column < n; ++column) {
    double sum = 0;
    for (int64_t i = top; i < m; ++i)
      sum += v[i - top] * x[i * n + column];
    for (int64_t i = top; i < m; ++i)
      x[i * n + column] -= tau * sum * v[i - top];
  }
}

/* linalg_qr(a [B, m, n]) -> Q [B, m, q], R [B, q, n], with q = min(m, n) or m */
tcrt_status_t tcrt_linalg_qr(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call) {
  (void)store;
  const int64_t count = call->operands[0].dims[0], m = call->operands[0].dims[1], n = call->operands[0].dims[2];
  const int64_t steps = least(m, n), q = call->results[0].dims[2];
  double *a = allocate(services, m * n + m * q + m * steps + steps);
  if (!a)
    return TCRT_ERROR_MACHINE;
  double *unitary = a + m * n, *reflectors = unitary + m * q, *taus = reflectors + m * steps;
  for (int64_t i = 0; i < count; ++i) {
    load(&call->operands[0], i, m * n, a);
    for (int64_t k = 0; k < steps; ++k) {
      double *v = reflectors + k * m, rest = 0;
      const double alpha = a[k * n + k];
      for (int64_t row = k + 1; row < m; ++row)
        rest = hypot(rest, a[row * n + k]);
      taus[k] = 0;
      v[0] = 1;
      for (int64_t row = k + 1; row < m; ++row)
        v[row - k] = 0;
      if (rest == 0)
        continue;
      const double beta = alpha > 0 || (alpha == 0 && !signbit(alpha)) ? -hypot(alpha, rest) : hypot(alpha, rest);
      taus[k] = (beta - alpha) / beta;
      for (int64_t row = k + 1; row < m; ++row) {
        v[row - k] = a[row * n + k] / (alpha - beta);
        a[row * n + k] = 0;
      }
      a[k * n + k] = beta;
      reflect(a, m, n, k + 1, k, v, taus[k]);
    }
    save(&call->results[1], i, q * n, a);
    for (int64_t row = 0; row < m; ++row)
      for (int64_t column = 0; column < q; ++column)
        unitary[row * q + column] = row == column;
    for (int64_t k = steps - 1; k >= 0; --k)
      reflect(unitary, m, q, 0, k, reflectors + k * m, taus[k]);
    save(&call->results[0], i, m * q, unitary);
  }
  free(a);
  return TCRT_OK;
}

/* ---- Jacobi's rotations ---- */

static void rotate(double *x, double *y, int64_t count, double c, double s) {
  for (int64_t i = 0; i < count; ++i) {
    const double a = x[i], b = y[i];
    x[i] = c * a - s * b;
    y[i] = s * a + c * b;
  }
}

/* The rotation that makes the element between two of a symmetric matrix 0. */
static void find_rotation(double first, double between, double second, double *c, double *s) {
  const double zeta = (second - first) / (2 * between);
  const double t = (zeta >= 0 ? 1 : -1) / (fabs(zeta) + hypot(1, zeta));
  *c = 1 / hypot(1, t);
  *s = *c * t;
}

/* linalg_eigh(a [B, n, n], of which the lower triangle is read) -> values [B, n], rising; vectors [B, n, n], columns */
tcrt_status_t tcrt_linalg_eigh(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call) {
  (void)store;
  const int64_t count = call->operands[0].dims[0], n = call->operands[0].dims[1];
  double *a = allocate(services, 3 * n * n + n);
  if (!a)
    return TCRT_ERROR_MACHINE;
  double *vectors = a + n * n, *sorted = vectors + n * n, *values = sorted + n * n; /* vectors: rows */
  for (int64_t i = 0; i < count; ++i) {
    load(&call->operands[0], i, n * n, a);
    double norm = 0;
    for (int64_t row = 0; row < n; ++row)
      for (int64_t column = 0; column < n; ++column) {
        a[row * n + column] = a[column > row ? column * n + row : row * n + column];
        vectors[row * n + column] = row == column;
        norm = hypot(norm, a[row * n + column]);
      }
    for (int sweep = 0; sweep < MOST_SWEEPS; ++sweep) {
      double off = 0;
      for (int64_t p = 0; p < n; ++p)
        for (int64_t q = p + 1; q < n; ++q) {
          const double between = a[p * n + q];
          off = hypot(off, between);
          if (fabs(between) <= 1e-300)
            continue;
          double c, s;
          find_rotation(a[p * n + p], between, a[q * n + q], &c, &s);
          rotate(a + p * n, a + q * n, n, c, s);
          for (int64_t row = 0; row < n; ++row) {
            double *x = &a[row * n + p], *y = &a[row * n + q];
            const double u = *x, v = *y;
            *x = c * u - s * v;
            *y = s * u + c * v;
          }
          rotate(vectors + p * n, vectors + q * n, n, c, s);
        }
      if (!(off > 1e-17 * norm))
        break;
    }
    for (int64_t k = 0; k < n; ++k) {
      /* The k-th smallest of the diagonal: those before it are marked by NaN in its place. */
      int64_t best = -1;
      for (int64_t j = 0; j < n; ++j)
        if (a[j * n + j] == a[j * n + j] && (best < 0 || a[j * n + j] < a[best * n + best]))
          best = j;
      values[k] = best < 0 ? NAN : a[best * n + best];
      for (int64_t j = 0; j < n; ++j)
        sorted[j * n + k] = best < 0 ? NAN : vectors[best * n + j];
      if (best >= 0)
        a[best * n + best] = NAN;
    }
    save(&call->results[0], i, n, values);
    save(&call->results[1], i, n * n, sorted);
  }
  free(a);
  return TCRT_OK;
}

/* Makes row `row` of x [rows, m] a unit vector that stands on those before it. */
static void complete_row(double *x, int64_t row, int64_t m) {
  double *v = x + row * m;
  for (int64_t unit = 0; unit < m; ++unit) {
    for (int64_t i = 0; i < m; ++i)
      v[i] = i == unit;
    for (int pass = 0; pass < 2; ++pass)
      for (int64_t j = 0; j < row; ++j) {
        double sum = 0;
        for (int64_t i = 0; i < m; ++i)
          sum += v[i] * x[j * m + i];
        for (int64_t i = 0; i < m; ++i)
          v[i] -= sum * x[j * m + i];
      }
    double norm = 0;
    for (int64_t i = 0; i < m; ++i)
      norm = hypot(norm, v[i]);
    /* One of m unit vectors has at least this much outside of the space of fewer than m others. */
    if (norm * norm * (double)m < 0.5)
      continue;
    for (int64_t i = 0; i < m; ++i)
      v[i] /= norm;
    return;
  }
}

/* Singular values, falling, and vectors of w [n, m], the rows of which are columns of a matrix [m, n], m >= n. Rows of
 * u [rows, m] and v [n, n] become left and right vectors; w is overwritten. */
static void find_singular(double *w, int64_t n, int64_t m, double *values, double *u, int64_t rows, double *v,
                          double *spare) {
  for (int64_t i = 0; i < n * n; ++i)
    spare[i] = i % (n + 1) == 0;
  for (int sweep = 0, changed = 1; sweep < MOST_SWEEPS && changed; ++sweep) {
    changed = 0;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        double first = 0, second = 0, between = 0;
        for (int64_t i = 0; i < m; ++i) {
          first += w[p * m + i] * w[p * m + i];
          second += w[q * m + i] * w[q * m + i];
          between += w[p * m + i] * w[q * m + i];
        }
        if (!(fabs(between) > 1e-16 * sqrt(first) * sqrt(second)) || fabs(between) <= 1e-300)
          continue;
        changed = 1;
        double c, s;
        find_rotation(first, between, second, &c, &s);
        rotate(w + p * m, w + q * m, m, c, s);
        rotate(spare + p * n, spare + q * n, n, c, s);
      }
  }
  double *norms = spare + n * n, largest = 0;
  for (int64_t j = 0; j < n; ++j) {
    norms[j] = 0;
    for (int64_t i = 0; i < m; ++i)
      norms[j] = hypot(norms[j], w[j * m + i]);
    largest = norms[j] > largest ? norms[j] : largest;
  }
  int64_t known = 0;
  for (int64_t k = 0; k < n; ++k) {
    int64_t best = -1;
    for (int64_t j = 0; j < n; ++j)
      if (norms[j] >= 0 && (best < 0 || norms[j] > norms[best]))
        best = j;
    if (best < 0) { /* NaN */
      for (int64_t j = 0; j < n; ++j)
        values[j] = NAN;
      for (int64_t j = 0; j < rows * m; ++j)
        u[j] = NAN;
      for (int64_t j = 0; j < n * n; ++j)
        v[j] = NAN;
      return;
    }
    values[k] = norms[best];
    memcpy(v + k * n, spare + best * n, (size_t)n * sizeof(double));
    if (norms[best] > 1e-15 * largest && k < rows) {
      for (int64_t i = 0; i < m; ++i)
        u[k * m + i] = w[best * m + i] / norms[best];
      known = k + 1;
    }
    norms[best] = -1;
  }
  for (int64_t k = known; k < rows; ++k)
    complete_row(u, k, m);
}

static void transpose(const double *from, int64_t rows, int64_t columns, double *to) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      to[j * rows + i] = from[i * columns + j];
}

/* linalg_svd(a [B, m, n]) -> U [B, m, p], values [B, min(m, n)], V' [B, q, n]; p and q are min(m, n), or m and n */
tcrt_status_t tcrt_linalg_svd(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call) {
  (void)store;
  const int64_t count = call->operands[0].dims[0], m = call->operands[0].dims[1], n = call->operands[0].dims[2];
  const int64_t p = call->results[0].dims[2], q = call->results[2].dims[1];
  const int is_tall = m >= n;
  const int64_t longer = is_tall ? m : n, shorter = is_tall ? n : m, rows = is_tall ? p : q;
  double *a =
      allocate(services, 2 * m * n + shorter + rows * longer + 2 * shorter * shorter + shorter + longer * longer);
  if (!a)
    return TCRT_ERROR_MACHINE;
  double *w = a + m * n, *values = w + m * n, *u = values + shorter, *v = u + rows * longer,
         *spare = v + shorter * shorter, *turned = spare + shorter * shorter + shorter;
  for (int64_t i = 0; i < count; ++i) {
    load(&call->operands[0], i, m * n, a);
    if (is_tall)
      transpose(a, m, n, w);
    else
      memcpy(w, a, (size_t)(m * n) * sizeof(double));
    find_singular(w, shorter, longer, values, u, rows, v, spare);
    save(&call->results[1], i, shorter, values);
    /* A = U S V': of a wide matrix the parts have changed places. */
    if (is_tall) {
      transpose(u, rows, longer, turned);
      save(&call->results[0], i, m * p, turned);
      save(&call->results[2], i, q * n, v);
    } else {
      transpose(v, shorter, shorter, turned);
      save(&call->results[0], i, m * p, turned);
      save(&call->results[2], i, q * n, u);
    }
  }
  free(a);
  return TCRT_OK;
}
