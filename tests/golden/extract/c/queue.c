/* A queue of jobs.
 * XXX: not safe for signals
 */
#include <stdio.h>
#include "queue.h"
#include "../util/alloc.h"

#define QUEUE_MAX 128
#define QUEUE_FULL(q) ((q)->len >= QUEUE_MAX) /* BUG: off by one? */
#define EMPTY

typedef unsigned long job_id;
typedef int (*job_fn)(void *arg, struct queue *q);

typedef struct job {
    job_id id; // FIXME: 64 bit
    job_fn run;
    struct job *next;
} job_t, *job_ptr;

typedef enum { IDLE, BUSY = 2 } state;

struct queue {
    job_t *head;
    enum level level;
    size_t len;
};

enum level { LOW, HIGH };
union word { int i; float f; };

static const char *names[] = {"FIXME: no", "größe"};
extern int queue_debug;

int queue_push(struct queue *q, job_t *job);
static void drop(job_t *);

static inline int
queue_len(const struct queue *q)
{
    return q->len;
}

struct queue *queue_new(size_t size /* in jobs */, job_fn done)
{
    struct queue *q = zalloc(sizeof(struct queue));
    q->head = (job_t *)zalloc(size);
    done(q->head->run, q);
    q->head->next->run(NULL, q);
    if (QUEUE_FULL(q)) log_line("full");
    return q;
}

char **queue_names(void) { return (char **)names; }

#ifdef HAVE_THREADS
int queue_wait(struct queue *q) {
#else
int queue_wait(struct queue *q, int ms) {
#endif
    return poll_once(q);
}

int old_style(a, b) int a; char *b; { return a; }
