#include "carbon_rank.h"

#include <cfloat>
#include <cmath>
#include <limits>
#include <new>
#include <vector>

static_assert(std::numeric_limits<double>::is_iec559, "scores are defined in IEEE 754 doubles");
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#error "doubles are evaluated with extra precision here (x87?): build for SSE2, or the scores differ between machines"
#endif
#ifdef __FAST_MATH__
#error "-ffast-math reorders sums: the scores would differ between machines"
#endif

namespace {

bool is_weight(double value) { return std::isfinite(value) && value >= 0.0; }

/* The graph as the rounds read it: for each target, where its mass comes from. */
struct Graph {
    std::vector<size_t> first;   /* n + 1: edges [first[v], first[v + 1]) enter v */
    std::vector<int32_t> source; /* per edge */
    std::vector<double> share;   /* per edge: the part of the source's score that flows along it */
    std::vector<int32_t> dangling;
};

carbon_rank_status build(Graph &graph, int32_t n, size_t edges, const int32_t *src, const int32_t *dst,
                         const double *weight) {
    const auto nodes = static_cast<size_t>(n);
    std::vector<double> out(nodes, 0.0);
    graph.first.assign(nodes + 1, 0);
    for (size_t e = 0; e < edges; ++e) {
        if (src[e] < 0 || src[e] >= n || dst[e] < 0 || dst[e] >= n) return CARBON_RANK_BAD_INDEX;
        if (!is_weight(weight[e])) return CARBON_RANK_BAD_WEIGHT;
        out[static_cast<size_t>(src[e])] += weight[e];
        if (weight[e] > 0.0) ++graph.first[static_cast<size_t>(dst[e]) + 1];
    }
    for (size_t v = 0; v < nodes; ++v) {
        if (!std::isfinite(out[v])) return CARBON_RANK_OVERFLOW;
        if (out[v] == 0.0) graph.dangling.push_back(static_cast<int32_t>(v));
        graph.first[v + 1] += graph.first[v];
    }
    const size_t kept = graph.first[nodes];
    graph.source.resize(kept);
    graph.share.resize(kept);
    std::vector<size_t> cursor(graph.first.begin(), graph.first.end() - 1);
    for (size_t e = 0; e < edges; ++e) {
        if (weight[e] == 0.0) continue;
        const size_t slot = cursor[static_cast<size_t>(dst[e])]++;
        graph.source[slot] = src[e];
        graph.share[slot] = weight[e] / out[static_cast<size_t>(src[e])];
    }
    return CARBON_RANK_OK;
}

carbon_rank_status normalise(std::vector<double> &p, const double *personalization) {
    double total = 0.0;
    if (personalization != nullptr) {
        for (size_t v = 0; v < p.size(); ++v) {
            if (!is_weight(personalization[v])) return CARBON_RANK_BAD_PERSONALIZATION;
            total += personalization[v];
        }
        if (!std::isfinite(total)) return CARBON_RANK_OVERFLOW;
    }
    for (size_t v = 0; v < p.size(); ++v) {
        p[v] = total > 0.0 ? personalization[v] / total : 1.0 / static_cast<double>(p.size());
    }
    return CARBON_RANK_OK;
}

void iterate(const Graph &graph, const std::vector<double> &p, double damping, double tol, int32_t max_iter,
             double *scores) {
    const size_t n = p.size();
    std::vector<double> rank(p);
    std::vector<double> next(n);
    for (int32_t round = 0; round < max_iter; ++round) {
        double lost = 0.0;
        for (const int32_t v : graph.dangling) lost += rank[static_cast<size_t>(v)];
        const double base = (1.0 - damping) + damping * lost;
        double moved = 0.0;
        for (size_t v = 0; v < n; ++v) {
            double inflow = 0.0;
            for (size_t e = graph.first[v]; e < graph.first[v + 1]; ++e) {
                inflow += rank[static_cast<size_t>(graph.source[e])] * graph.share[e];
            }
            next[v] = base * p[v] + damping * inflow;
            moved += std::fabs(next[v] - rank[v]);
        }
        rank.swap(next);
        if (moved <= tol) break;
    }
    for (size_t v = 0; v < n; ++v) scores[v] = rank[v];
}

} // namespace

extern "C" carbon_rank_status carbon_rank(int32_t n, size_t edges, const int32_t *src, const int32_t *dst,
                                          const double *weight, const double *personalization, double damping,
                                          double tol, int32_t max_iter, double *scores) {
    if (n < 0) return CARBON_RANK_BAD_N;
    if (!(damping >= 0.0 && damping <= 1.0)) return CARBON_RANK_BAD_DAMPING;
    if (!is_weight(tol)) return CARBON_RANK_BAD_TOL;
    if (max_iter < 1) return CARBON_RANK_BAD_MAX_ITER;
    if (edges > static_cast<size_t>(std::numeric_limits<int32_t>::max())) return CARBON_RANK_TOO_MANY_EDGES;
    try {
        Graph graph;
        carbon_rank_status status = build(graph, n, edges, src, dst, weight);
        if (status != CARBON_RANK_OK) return status;
        std::vector<double> p(static_cast<size_t>(n));
        status = normalise(p, personalization);
        if (status != CARBON_RANK_OK) return status;
        iterate(graph, p, damping, tol, max_iter, scores);
    } catch (const std::bad_alloc &) { /* the only exception that the code above can raise; none may cross into C */
        return CARBON_RANK_NO_MEMORY;
    }
    return CARBON_RANK_OK;
}

extern "C" const char *carbon_rank_message(carbon_rank_status status) {
    switch (status) {
    case CARBON_RANK_OK:
        return "no error";
    case CARBON_RANK_BAD_N:
        return "n must be between 0 and 2147483647";
    case CARBON_RANK_BAD_DAMPING:
        return "damping must be between 0 and 1";
    case CARBON_RANK_BAD_TOL:
        return "tol must be finite and not negative";
    case CARBON_RANK_BAD_MAX_ITER:
        return "max_iter must be between 1 and 2147483647";
    case CARBON_RANK_TOO_MANY_EDGES:
        return "there must be at most 2147483647 edges";
    case CARBON_RANK_BAD_INDEX:
        return "src and dst must hold numbers from 0 up to n - 1";
    case CARBON_RANK_BAD_WEIGHT:
        return "weight must hold finite numbers that are not negative";
    case CARBON_RANK_OVERFLOW:
        return "the weights of one source, or the personalization, add up to infinity";
    case CARBON_RANK_BAD_PERSONALIZATION:
        return "personalization must hold finite numbers that are not negative";
    case CARBON_RANK_NO_MEMORY:
        return "out of memory";
    }
    return "unknown status";
}
