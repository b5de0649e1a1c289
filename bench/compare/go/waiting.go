// SPDX-License-Identifier: BSL-1.0

package main

/*
#include <pthread.h>
#include <time.h>

extern void called(long at);

static long monotonic(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}

static double cpu_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void* caller(void* rounds) {
  const struct timespec pause = {0, 1000000};
  for (long i = (long)rounds; i > 0; --i) {
    nanosleep(&pause, 0);
    called(monotonic());
  }
  return 0;
}

static pthread_t start_caller(long rounds) {
  pthread_t t;
  pthread_create(&t, 0, caller, (void*)rounds);
  return t;
}
*/
import "C"

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// park starts goroutines that wait for never and returns when all of them do (or are about to).
func park(never <-chan int, fibers int) *sync.WaitGroup {
	var inside int64
	wg := new(sync.WaitGroup)
	wg.Add(fibers)
	for i := 0; i < fibers; i++ {
		go func() {
			atomic.AddInt64(&inside, 1)
			<-never
			wg.Done()
		}()
		if i%1000 == 999 {
			runtime.Gosched()
		}
	}
	for atomic.LoadInt64(&inside) != int64(fibers) {
		runtime.Gosched()
	}
	return wg
}

func parked(workers int, s sizes) result {
	fibers := s.get("fibers")
	never := make(chan int)
	before := residentBytes()
	start := time.Now()
	wg := park(never, fibers)
	spawnPark := nsEach(fibers, start)
	bytes := (residentBytes() - before) / float64(fibers)
	start = time.Now()
	close(never)
	wg.Wait()
	return result{spawnPark, "ns", []extra{{"bytes", bytes}, {"wake", nsEach(fibers, start)}}}
}

var calls = make(chan int64, 1)

// A thread that is not Go's gets in like this.
//
//export called
func called(at C.long) { calls <- int64(at) }

func wake(workers int, s sizes) result {
	rounds := s.get("rounds")
	late := make([]int64, 0, rounds)
	C.start_caller(C.long(rounds))
	for i := 0; i < rounds; i++ {
		at := <-calls
		late = append(late, int64(C.monotonic())-at)
	}
	return percentiles(late)
}

func cpuMS() float64 { return float64(C.cpu_ms()) }

func idle(workers int, s sizes) result {
	never := make(chan int)
	wg := park(never, s.get("fibers"))
	time.Sleep(100 * time.Millisecond)
	before := cpuMS()
	time.Sleep(time.Duration(s.get("ms")) * time.Millisecond)
	cost := cpuMS() - before
	close(never)
	wg.Wait()
	return result{cost, "ms", nil}
}
