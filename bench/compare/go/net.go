// SPDX-License-Identifier: BSL-1.0

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

// listen announces a port of the loopback; the process ends when its standard input is closed. Go sends at once (no
// Nagle) by default.
func listen() net.Listener {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		fail(err.Error())
	}
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return l
}

func echoAll(peer net.Conn) {
	defer peer.Close()
	data := make([]byte, 4096)
	for {
		n, err := peer.Read(data)
		if err != nil {
			return
		}
		if _, err := peer.Write(data[:n]); err != nil {
			return
		}
	}
}

func echo(int, sizes) result {
	l := listen()
	for {
		peer, err := l.Accept()
		if err != nil {
			fail(err.Error())
		}
		go echoAll(peer)
	}
}

// The files of the folder that COMPARE_FILES names.
func files(int, sizes) result {
	l := listen()
	fail(http.Serve(l, http.FileServer(http.Dir(os.Getenv("COMPARE_FILES")))).Error())
	return result{}
}
