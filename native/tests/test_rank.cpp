/* The library without Python: hand-worked scores to the last bit, every refusal, and a larger graph for the sanitizers. */
#include "carbon_rank.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

namespace {

int checks = 0;
int failures = 0;

void check(bool good, const char *what, int line) {
    ++checks;
    if (good) return;
    ++failures;
    std::fprintf(stderr, "line %d: %s\n", line, what);
}
#define CHECK(condition) check((condition), #condition, __LINE__)

struct Case {
    int32_t n = 0;
    std::vector<int32_t> src, dst;
    std::vector<double> weight, personalization;
    double damping = 0.85, tol = 1e-10;
    int32_t max_iter = 200;
    std::vector<double> scores;

    carbon_rank_status rank() {
        scores.assign(n > 0 ? static_cast<size_t>(n) : 0, -1.0);
        return carbon_rank(n, src.size(), src.data(), dst.data(), weight.data(),
                           personalization.empty() ? nullptr : personalization.data(), damping, tol, max_iter,
                           scores.data());
    }
};

Case chain() {
    Case c;
    c.n = 2;
    c.src = {0};
    c.dst = {1};
    c.weight = {1.0};
    return c;
}

void scores() {
    Case c;
    CHECK(c.rank() == CARBON_RANK_OK); /* n == 0 */

    c.n = 4; /* no edges: all dangling, so the restart vector itself */
    CHECK(c.rank() == CARBON_RANK_OK);
    for (const double score : c.scores) CHECK(score == 0.25);

    c.personalization = {1.0, 0.0, 3.0, 0.0};
    CHECK(c.rank() == CARBON_RANK_OK);
    CHECK(c.scores == std::vector<double>({0.25, 0.0, 0.75, 0.0}));

    /* One round of 0 -> 1 from (1/2, 1/2) with damping 1/2, exact in binary:
     * lost = 1/2, base = 1/2 + 1/2 * 1/2 = 3/4; next = (3/4 * 1/2, 3/4 * 1/2 + 1/2 * 1/2) = (3/8, 5/8). */
    c = chain();
    c.damping = 0.5;
    c.max_iter = 1;
    CHECK(c.rank() == CARBON_RANK_OK);
    CHECK(c.scores == std::vector<double>({0.375, 0.625}));

    /* Its fixed point: r0 = (1/2 + r1/2) / 2 and r0 + r1 = 1 give r0 = 2/5. */
    c.max_iter = 200;
    CHECK(c.rank() == CARBON_RANK_OK);
    CHECK(std::fabs(c.scores[0] - 0.4) < 1e-9 && std::fabs(c.scores[1] - 0.6) < 1e-9);

    /* A repeated edge is the sum of its weights, and an edge of weight 0 is none: same bits. */
    Case once, twice;
    once.n = twice.n = 3;
    once.src = {0, 0, 1, 2};
    once.dst = {1, 2, 0, 2};
    once.weight = {2.0, 1.0, 1.0, 1.0};
    twice.src = {0, 0, 0, 1, 2, 2};
    twice.dst = {1, 2, 1, 0, 2, 1};
    twice.weight = {1.0, 1.0, 1.0, 1.0, 1.0, 0.0};
    CHECK(once.rank() == CARBON_RANK_OK && twice.rank() == CARBON_RANK_OK);
    for (size_t v = 0; v < 3; ++v) CHECK(std::fabs(once.scores[v] - twice.scores[v]) < 1e-12);
}

void refusals() {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double inf = std::numeric_limits<double>::infinity();
    const double huge = std::numeric_limits<double>::max();
    Case c = chain();
    c.n = -1;
    CHECK(c.rank() == CARBON_RANK_BAD_N);
    for (const double bad : {-0.1, 1.1, nan}) {
        c = chain();
        c.damping = bad;
        CHECK(c.rank() == CARBON_RANK_BAD_DAMPING);
    }
    for (const double bad : {-1.0, nan, inf}) {
        c = chain();
        c.tol = bad;
        CHECK(c.rank() == CARBON_RANK_BAD_TOL);
        c = chain();
        c.weight = {bad};
        CHECK(c.rank() == CARBON_RANK_BAD_WEIGHT);
        c = chain();
        c.personalization = {1.0, bad};
        CHECK(c.rank() == CARBON_RANK_BAD_PERSONALIZATION);
    }
    c = chain();
    c.max_iter = 0;
    CHECK(c.rank() == CARBON_RANK_BAD_MAX_ITER);
    for (const int32_t bad : {-1, 2, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()}) {
        c = chain();
        c.src = {bad};
        CHECK(c.rank() == CARBON_RANK_BAD_INDEX);
        c = chain();
        c.dst = {bad};
        CHECK(c.rank() == CARBON_RANK_BAD_INDEX);
        CHECK(c.scores[0] == -1.0); /* left alone */
    }
    c = chain();
    c.src = {0, 0};
    c.dst = {1, 1};
    c.weight = {huge, huge};
    CHECK(c.rank() == CARBON_RANK_OVERFLOW);
    c = chain();
    c.personalization = {huge, huge};
    CHECK(c.rank() == CARBON_RANK_OVERFLOW);
    for (int status = CARBON_RANK_OK; status <= CARBON_RANK_NO_MEMORY; ++status) {
        CHECK(std::strlen(carbon_rank_message(static_cast<carbon_rank_status>(status))) > 5);
    }
}

/* Also the frozen bits: FNV-1a over the scores of a generated graph. It changes only when the definition does, so it is
 * the same on every compiler, CPU and optimisation level; tests/repo/test_pagerank.py has the same graph and number. */
void larger() {
    Case c;
    c.n = 2000;
    uint32_t state = 1;
    const auto random = [&state](uint32_t below) {
        state = state * 1664525u + 1013904223u;
        return (state >> 8) % below;
    };
    for (int e = 0; e < 10000; ++e) {
        c.src.push_back(static_cast<int32_t>(random(1800)));
        c.dst.push_back(static_cast<int32_t>(random(2000)));
        c.weight.push_back(static_cast<double>(random(1000)) / 7.0);
    }
    for (int v = 0; v < c.n; ++v) c.personalization.push_back(static_cast<double>(random(50)));
    CHECK(c.rank() == CARBON_RANK_OK);
    double total = 0.0;
    uint64_t hash = 14695981039346656037u;
    for (const double score : c.scores) {
        total += score;
        uint64_t bits;
        std::memcpy(&bits, &score, sizeof bits);
        for (int shift = 0; shift < 64; shift += 8) hash = (hash ^ ((bits >> shift) & 0xff)) * 1099511628211u;
    }
    CHECK(std::fabs(total - 1.0) < 1e-12);
    CHECK(hash == 0xe95b5d8e0f3c42f8u);
    std::printf("scores: %016llx\n", static_cast<unsigned long long>(hash));
}

} // namespace

int main() {
    scores();
    refusals();
    larger();
    std::printf("%d checks, %d failed\n", checks, failures);
    return failures == 0 ? 0 : 1;
}
