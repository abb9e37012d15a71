/* carbon_rank: personalised PageRank over a weighted directed graph. Knows nothing of Python.
 *
 * The scores are bit-identical on every machine, because every rounding is fixed: IEEE doubles, no fused multiply-add, no
 * reassociation, and one written-down order of operations. `carbon_mind/repo/pagerank.py` does the same operations in the
 * same order in Python; whoever changes one changes both.
 *
 *   total    = sum of personalization[v], v ascending
 *   p[v]     = personalization[v] / total, or 1 / n for every v when the total is 0
 *   out[s]   = sum of weight[e] over the edges e that leave s, in the order of the edge list
 *   share[e] = weight[e] / out[src[e]]; edges of weight 0 are left out
 *   r        = p, and then, at most max_iter times:
 *     lost   = sum of r[v] over the v with out[v] == 0, v ascending
 *     base   = (1 - damping) + damping * lost
 *     next[v]= base * p[v] + damping * (sum of r[src[e]] * share[e] over the edges e that enter v, in edge-list order)
 *     moved  = sum of |next[v] - r[v]|, v ascending
 *     r      = next; stop when moved <= tol
 *
 * Edges are grouped by target with a stable counting sort, so "in edge-list order" holds inside each group. Self loops
 * and repeated edges are allowed; each counts. Time O(n + edges) per round, memory about 36 n + 12 edges bytes.
 */
#ifndef CARBON_RANK_H
#define CARBON_RANK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum carbon_rank_status {
    CARBON_RANK_OK = 0,
    CARBON_RANK_BAD_N,               /* n < 0 */
    CARBON_RANK_BAD_DAMPING,         /* not in [0, 1] */
    CARBON_RANK_BAD_TOL,             /* negative, infinite or NaN */
    CARBON_RANK_BAD_MAX_ITER,        /* < 1 */
    CARBON_RANK_TOO_MANY_EDGES,      /* more than 2^31 - 1 */
    CARBON_RANK_BAD_INDEX,           /* src or dst outside [0, n) */
    CARBON_RANK_BAD_WEIGHT,          /* negative, infinite or NaN */
    CARBON_RANK_OVERFLOW,            /* the weights of one source, or the personalization, add up to infinity */
    CARBON_RANK_BAD_PERSONALIZATION, /* negative, infinite or NaN */
    CARBON_RANK_NO_MEMORY
} carbon_rank_status;

/* Ranks n nodes. `src`, `dst` and `weight` hold `edges` entries; `personalization` holds n entries or is NULL (uniform);
 * `scores` receives n entries that add up to 1 within rounding, and is left alone unless CARBON_RANK_OK is returned.
 * Checked in this order: the numbers, each edge (index, then weight), the sums, the personalization. Not reaching `tol` in `max_iter` rounds is no error: the last
 * round's scores are as deterministic as any. Reads and writes nothing else; safe to call from several threads. */
carbon_rank_status carbon_rank(int32_t n, size_t edges, const int32_t *src, const int32_t *dst, const double *weight,
                               const double *personalization, double damping, double tol, int32_t max_iter,
                               double *scores);

/* One English line for a status, static storage, never NULL. */
const char *carbon_rank_message(carbon_rank_status status);

#ifdef __cplusplus
}
#endif

#endif
