/* What the side-by-side cells call of DPDK: its inline functions, inlined here. Times nothing. */

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

/* Starts the library: no huge pages, no files, no devices, no root. 0, or its error number. */
static int start(void)
{
	char *argv[] = { "bench", "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry",
		"--log-level=error", "-m", "1024", "-l", "0", NULL };
	cpu_set_t before;
	int moved = pthread_getaffinity_np(pthread_self(), sizeof(before), &before) == 0;
	int done = rte_eal_init(sizeof(argv) / sizeof(*argv) - 1, argv);

	/* It has pinned this thread to its own first CPU. */
	if (moved)
		pthread_setaffinity_np(pthread_self(), sizeof(before), &before);
	return done < 0 ? rte_errno : 0;
}

/* Starts the library once, and lets this thread have a cache in its pools. */
int bench_dpdk_ready(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static int started, failure;

	pthread_mutex_lock(&lock);
	if (!started) {
		failure = start();
		started = 1;
	}
	if (failure == 0 && rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() != 0)
		failure = rte_errno;
	pthread_mutex_unlock(&lock);
	return failure;
}

struct rte_mempool *bench_dpdk_pool(const char *name, unsigned mbufs, unsigned cache, uint16_t room)
{
	return rte_pktmbuf_pool_create(name, mbufs, cache, 0, room, SOCKET_ID_ANY);
}

void bench_dpdk_drop(struct rte_mempool *pool)
{
	rte_mempool_free(pool);
}

/* Mbufs in the pool and in its caches. */
unsigned bench_dpdk_available(const struct rte_mempool *pool)
{
	return rte_mempool_avail_count(pool);
}

unsigned bench_dpdk_element(const struct rte_mempool *pool)
{
	return pool->elt_size;
}

/* What a call costs that does nothing. */
void bench_dpdk_nothing(struct rte_mbuf **burst, unsigned n)
{
	__asm__ volatile("" : : "r"(burst), "r"(n) : "memory");
}

int bench_dpdk_alloc(struct rte_mempool *pool, struct rte_mbuf **burst, unsigned n)
{
	return rte_pktmbuf_alloc_bulk(pool, burst, n);
}

void bench_dpdk_free(struct rte_mbuf **burst, unsigned n)
{
	rte_pktmbuf_free_bulk(burst, n);
}

/* The first word behind the header, where the variants of ours write too. */
static inline uint64_t *word(struct rte_mbuf *m)
{
	return (uint64_t *)(m + 1);
}

uint64_t bench_dpdk_word(struct rte_mbuf *m)
{
	return *word(m);
}

/* Allocates, marks and frees `bursts` bursts; 0 if there was always enough. */
int bench_dpdk_pairs(struct rte_mempool *pool, struct rte_mbuf **burst, unsigned n,
		unsigned bursts, uint64_t mark)
{
	for (unsigned i = 0; i < bursts; i++) {
		if (rte_pktmbuf_alloc_bulk(pool, burst, n) != 0)
			return -1;
		__asm__ volatile("" : : : "memory");
		for (unsigned at = 0; at < n; at++)
			*word(burst[at]) = mark;
		rte_pktmbuf_free_bulk(burst, n);
	}
	return 0;
}
