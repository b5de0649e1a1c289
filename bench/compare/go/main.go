// SPDX-License-Identifier: BSL-1.0

// Go's side of bench/compare, as its users would write it fast: goroutines joined by a WaitGroup, results and messages
// through channels, range over a channel until it is closed. A channel of one is also what they use as a semaphore and to
// notify somebody, both of which the standard library leaves out. GOMAXPROCS is the number of workers; the collector runs as
// it does by default. Same command line and output as the others, see ../program.hpp.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"time"
)

type sizes map[string]int

func (s sizes) get(key string) int {
	v, there := s[key]
	if !there {
		fail("missing size: " + key)
	}
	return v
}

type extra struct {
	key   string
	value float64
}

type result struct {
	value float64
	unit  string
	extra []extra
}

type workload struct {
	name       string
	maxWorkers int
	run        func(workers int, s sizes) result
}

var all = []workload{
	{"yield", 1, yields},
	{"spawn-join", 2, spawnJoin},
	{"spawn-all", 1, spawnAll},
	{"fib", 2, fib},
	{"skynet-channels", 2, skynetChannels},
	{"skynet-join", 2, skynetJoin},
	{"ping-pong", 2, pingPong},
	{"channel", 2, stream},
	{"ring", 2, ring},
	{"sieve", 2, sieve},
	{"parked", 1, parked},
	{"wake", 2, wake},
	{"idle", 2, idle},
	{"sleepers", 2, sleepers},
	{"mutex", 2, mutexShared},
	{"mutex-alone", 1, mutexAlone},
	{"semaphore", 1, semaphoreAlone},
	{"notify", 2, notifyInTurns},
	{"once", 1, onceGet},
	{"echo", 2, echo},
	{"http", 2, files},
}

func fail(why string) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(3)
}

func require(good bool, what string) {
	if !good {
		fail("wrong result: " + what)
	}
}

func nsEach(operations int, start time.Time) float64 {
	return float64(time.Since(start).Nanoseconds()) / float64(operations)
}

// proc reads a number that follows a word in a file of /proc/self.
func proc(file, word string) float64 {
	text, err := os.ReadFile("/proc/self/" + file)
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	for i, f := range fields {
		if f == word && i+1 < len(fields) {
			n, _ := strconv.ParseFloat(fields[i+1], 64)
			return n
		}
	}
	return 0
}

func residentBytes() float64 { return proc("status", "VmRSS:") * 1024 }
func peakMB() float64        { return proc("status", "VmHWM:") / 1024 }

func percentiles(ns []int64) result {
	sort.Slice(ns, func(a, b int) bool { return ns[a] < ns[b] })
	at := func(p float64) float64 { return float64(ns[int(p*float64(len(ns)-1))]) / 1e3 }
	return result{at(0.5), "us", []extra{{"p99", at(0.99)}, {"max", at(1)}}}
}

func list() {
	for _, w := range all {
		for n := 1; n <= w.maxWorkers; n++ {
			fmt.Println(w.name, n)
		}
	}
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--list" {
		list()
		return
	}
	if len(os.Args) < 3 {
		fail("usage: PROGRAM --list | PROGRAM WORKLOAD WORKERS KEY=NUMBER …")
	}
	workers, _ := strconv.Atoi(os.Args[2])
	s := sizes{}
	for _, a := range os.Args[3:] {
		key, value, _ := strings.Cut(a, "=")
		number, err := strconv.Atoi(value)
		if err != nil {
			fail("not KEY=NUMBER: " + a)
		}
		s[key] = number
	}
	for _, w := range all {
		if w.name != os.Args[1] {
			continue
		}
		if workers < 1 || workers > w.maxWorkers {
			fail("not with so many workers")
		}
		runtime.GOMAXPROCS(workers)
		r := w.run(workers, s)
		fmt.Printf(`{"workload": "%s", "workers": %d, "value": %.4f, "unit": "%s", "extra": {`, w.name, workers, r.value, r.unit)
		comma := ""
		for _, e := range r.extra {
			fmt.Printf(`%s"%s": %.4f`, comma, e.key, e.value)
			comma = ", "
		}
		fmt.Println("}}")
		return
	}
	fail("no such workload: " + os.Args[1])
}
