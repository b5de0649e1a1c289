// SPDX-License-Identifier: BSL-1.0

package main

import (
	"runtime"
	"sync"
	"time"
)

func yields(workers int, s sizes) result {
	fibers, turns := s.get("fibers"), s.get("turns")
	var wg sync.WaitGroup
	wg.Add(fibers)
	start := time.Now()
	for i := 0; i < fibers; i++ {
		go func() {
			for k := 0; k < turns; k++ {
				runtime.Gosched()
			}
			wg.Done()
		}()
	}
	wg.Wait()
	return result{nsEach(fibers*turns, start), "ns", nil}
}

func batch(atOnce int) {
	var wg sync.WaitGroup
	wg.Add(atOnce)
	for i := 0; i < atOnce; i++ {
		go wg.Done()
	}
	wg.Wait()
}

func spawnJoin(workers int, s sizes) result {
	atOnce, tasks := s.get("at_once"), s.get("tasks")
	batch(atOnce)
	start := time.Now()
	for done := 0; done < tasks; done += atOnce {
		batch(atOnce)
	}
	return result{nsEach(tasks, start), "ns", nil}
}

func spawnAll(workers int, s sizes) result {
	tasks := s.get("tasks")
	start := time.Now()
	batch(tasks)
	return result{nsEach(tasks, start), "ns", []extra{{"peak_mb", peakMB()}}}
}

func forkFib(n int) int {
	if n < 2 {
		return n
	}
	var wg sync.WaitGroup
	var half int
	wg.Add(1)
	go func() {
		half = forkFib(n - 1)
		wg.Done()
	}()
	other := forkFib(n - 2)
	wg.Wait()
	return half + other
}

func serialFib(n int) int {
	a, b := 0, 1
	for i := 0; i < n; i++ {
		a, b = b, a+b
	}
	return a
}

func spawnsOfFib(n int) int {
	before, now := 0, 0
	for i := 2; i <= n; i++ {
		before, now = now, now+before+1
	}
	return now
}

func fib(workers int, s sizes) result {
	n := s.get("n")
	require(forkFib(15) == serialFib(15), "fib")
	start := time.Now()
	found := forkFib(n)
	ns := nsEach(spawnsOfFib(n), start)
	require(found == serialFib(n), "fib")
	return result{ns, "ns", nil}
}

func joinTree(first, size int) int {
	if size == 1 {
		return first
	}
	var sums [10]int
	var wg sync.WaitGroup
	wg.Add(10)
	for i := 0; i < 10; i++ {
		go func(i int) {
			sums[i] = joinTree(first+i*(size/10), size/10)
			wg.Done()
		}(i)
	}
	wg.Wait()
	sum := 0
	for _, v := range sums {
		sum += v
	}
	return sum
}

func skynetJoin(workers int, s sizes) result {
	leaves := s.get("leaves")
	require(joinTree(0, 1000) == 499500, "skynet")
	start := time.Now()
	sum := joinTree(0, leaves)
	ns := nsEach(leaves, start)
	require(sum == leaves*(leaves-1)/2, "skynet")
	return result{ns, "ns", nil}
}
