// SPDX-License-Identifier: BSL-1.0

package main

import (
	"runtime"
	"sort"
	"sync"
	"time"
)

// sleepTimes are those of ../sleeps.hpp.
type sleepTimes uint64

func (s *sleepTimes) next() time.Duration {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return time.Duration(1000+(z^(z>>31))%99001) * time.Microsecond
}

// idealTime is the longest sum of one fiber's sleeps.
func idealTime(fibers, sleeps int) time.Duration {
	var ideal time.Duration
	for f := 0; f < fibers; f++ {
		times := sleepTimes(f)
		var sum time.Duration
		for k := 0; k < sleeps; k++ {
			sum += times.next()
		}
		if sum > ideal {
			ideal = sum
		}
	}
	return ideal
}

func live(fiber int, late []int64) {
	times := sleepTimes(fiber)
	now := time.Now()
	for k := range late {
		d := times.next()
		due := now.Add(d)
		time.Sleep(d)
		now = time.Now()
		late[k] = int64(now.Sub(due))
	}
}

func sleepers(workers int, s sizes) result {
	fibers, sleeps, inARow := s.get("fibers"), s.get("sleeps"), s.get("in_a_row")
	late := make([]int64, fibers*sleeps)
	for i := range late {
		late[i] = 1 // touched before the start, as in the others
	}
	ideal := idealTime(fibers, sleeps)
	var wg sync.WaitGroup
	wg.Add(fibers)
	before := cpuMS()
	start := time.Now()
	for i := 0; i < fibers; i++ {
		go func(i int) {
			live(i, late[i*sleeps:(i+1)*sleeps])
			wg.Done()
		}(i)
		if i%inARow == inARow-1 {
			runtime.Gosched()
		}
	}
	wg.Wait()
	wall, cpu := time.Since(start), cpuMS()-before
	sort.Slice(late, func(a, b int) bool { return late[a] < late[b] })
	early := sort.Search(len(late), func(i int) bool { return late[i] >= 0 })
	at := func(p float64) float64 { return float64(late[int(p*float64(len(late)-1))]) / 1e6 }
	return result{float64(wall) / float64(ideal), "x", []extra{
		{"p99_ms", at(0.99)}, {"max_ms", at(1)}, {"cpu_s", cpu / 1e3}, {"early", float64(early)},
	}}
}
