// SPDX-License-Identifier: BSL-1.0

package main

import (
	"sync"
	"time"
)

func channelTree(up chan<- int, first, size int) {
	if size == 1 {
		up <- first
		return
	}
	c := make(chan int)
	for i := 0; i < 10; i++ {
		go channelTree(c, first+i*(size/10), size/10)
	}
	sum := 0
	for i := 0; i < 10; i++ {
		sum += <-c
	}
	up <- sum
}

func skynetChannels(workers int, s sizes) result {
	leaves := s.get("leaves")
	c := make(chan int, 1)
	channelTree(c, 0, 1000)
	require(<-c == 499500, "skynet")
	start := time.Now()
	channelTree(c, 0, leaves)
	sum := <-c
	ns := nsEach(leaves, start)
	require(sum == leaves*(leaves-1)/2, "skynet")
	return result{ns, "ns", nil}
}

func pingPong(workers int, s sizes) result {
	rounds := s.get("rounds")
	there, back := make(chan int), make(chan int)
	go func() {
		for v := range there {
			back <- v
		}
	}()
	roundTrips := func(count int) {
		for i := 0; i < count; i++ {
			there <- i
			require(<-back == i, "echo")
		}
	}
	roundTrips(1000)
	start := time.Now()
	roundTrips(rounds)
	ns := nsEach(rounds, start)
	close(there)
	return result{ns, "ns", nil}
}

func stream(workers int, s sizes) result {
	senders, receivers := s.get("senders"), s.get("receivers")
	each := s.get("messages") / senders
	c := make(chan int, s.get("capacity"))
	sums := make(chan int, receivers)
	var in sync.WaitGroup
	in.Add(senders)
	start := time.Now()
	for r := 0; r < receivers; r++ {
		go func() {
			sum := 0
			for v := range c {
				sum += v
			}
			sums <- sum
		}()
	}
	for k := 0; k < senders; k++ {
		go func() {
			for i := 0; i < each; i++ {
				c <- i
			}
			in.Done()
		}()
	}
	in.Wait()
	close(c)
	total := 0
	for r := 0; r < receivers; r++ {
		total += <-sums
	}
	ns := nsEach(each*senders, start)
	require(total == senders*(each*(each-1)/2), "sum of messages")
	return result{ns, "ns", nil}
}

func ring(workers int, s sizes) result {
	members, laps := s.get("members"), s.get("laps")
	links := make([]chan int, members)
	for i := range links {
		links[i] = make(chan int)
	}
	for i := 0; i+1 < members; i++ {
		go func(in <-chan int, out chan<- int) {
			for v := range in {
				out <- v + 1
			}
			close(out)
		}(links[i], links[i+1])
	}
	var start time.Time
	for lap := -1; lap < laps; lap++ {
		if lap == 0 {
			start = time.Now() // everybody has started and waits
		}
		links[0] <- lap
		require(<-links[members-1] == lap+members-1, "ring")
	}
	ns := nsEach(members*laps, start)
	close(links[0])
	return result{ns, "ns", nil}
}

func nthPrime(n int) int {
	var primes []int
next:
	for i := 2; len(primes) < n; i++ {
		for _, p := range primes {
			if i%p == 0 {
				continue next
			}
		}
		primes = append(primes, i)
	}
	return primes[n-1]
}

func sieve(workers int, s sizes) result {
	primes := s.get("primes")
	last := 0
	start := time.Now()
	c := make(chan int)
	go func(out chan<- int) {
		for i := 2; ; i++ {
			out <- i
		}
	}(c)
	for k := 0; k < primes; k++ {
		last = <-c
		next := make(chan int)
		go func(in <-chan int, out chan<- int, prime int) {
			for {
				if v := <-in; v%prime != 0 {
					out <- v
				}
			}
		}(c, next, last)
		c = next
	}
	ms := float64(time.Since(start).Nanoseconds()) / 1e6
	require(last == nthPrime(primes), "sieve")
	return result{ms, "ms", nil}
}
