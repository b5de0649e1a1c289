// SPDX-License-Identifier: BSL-1.0

package main

import (
	"sync"
	"time"
)

func mutexShared(workers int, s sizes) result {
	fibers, each := s.get("fibers"), s.get("each")
	var m sync.Mutex
	var wg sync.WaitGroup
	counter := 0
	wg.Add(fibers)
	start := time.Now()
	for i := 0; i < fibers; i++ {
		go func() {
			for k := 0; k < each; k++ {
				m.Lock()
				counter++
				m.Unlock()
			}
			wg.Done()
		}()
	}
	wg.Wait()
	ns := nsEach(fibers*each, start)
	require(counter == fibers*each, "counter")
	return result{ns, "ns", nil}
}

func mutexAlone(workers int, s sizes) result {
	count := s.get("count")
	var m sync.Mutex
	start := time.Now()
	for i := 0; i < count; i++ {
		m.Lock()
		m.Unlock()
	}
	return result{nsEach(count, start), "ns", nil}
}

func semaphoreAlone(workers int, s sizes) result {
	count := s.get("count")
	permits := make(chan struct{}, 1)
	start := time.Now()
	for i := 0; i < count; i++ {
		permits <- struct{}{}
		<-permits
	}
	return result{nsEach(count, start), "ns", nil}
}

func notifyInTurns(workers int, s sizes) result {
	rounds := s.get("rounds")
	there, back := make(chan struct{}, 1), make(chan struct{}, 1)
	go func() {
		for range there {
			back <- struct{}{}
		}
	}()
	roundTrips := func(count int) {
		for i := 0; i < count; i++ {
			there <- struct{}{}
			<-back
		}
	}
	roundTrips(1000)
	start := time.Now()
	roundTrips(rounds)
	ns := nsEach(rounds, start)
	close(there)
	return result{ns, "ns", nil}
}

// A cell as Go's users write it: a Once beside the value.
type cell struct {
	once  sync.Once
	value int
}

func (c *cell) get() int {
	c.once.Do(func() { c.value = 1 })
	return c.value
}

func onceGet(workers int, s sizes) result {
	count := s.get("count")
	var c cell
	c.get()
	sum := 0
	start := time.Now()
	for i := 0; i < count; i++ {
		sum += c.get()
	}
	ns := nsEach(count, start)
	require(sum == count, "once")
	return result{ns, "ns", nil}
}
