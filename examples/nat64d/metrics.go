package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"signalbox.example/nat64/fastpath"
)

// startMetrics serves the counters, if asked to, and returns what ends it.
func (d *daemon) startMetrics() (stop func(), err error) {
	if d.o.metrics == "" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", d.o.metrics)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", d.serveMetrics)
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	go s.Serve(l)
	d.log("counters at http://%s/metrics", l.Addr())
	return func() { s.Close() }, nil
}

func (d *daemon) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	var b bytes.Buffer // the reader may be slow: nothing is written under the lock
	d.writeMetrics(&b)
	w.Write(b.Bytes())
}

// writeMetrics writes Prometheus' text form.
func (d *daemon) writeMetrics(w io.Writer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	family := func(name, kind, help string) { fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind) }
	if d.link != nil {
		s := d.link.Stats() // first: it brings the translator's counters up to date
		family("nat64_fastpath_packets_total", "counter", "Packets translated in the kernel; super-packets count once.")
		fmt.Fprintf(w, "nat64_fastpath_packets_total{direction=\"6to4\"} %d\nnat64_fastpath_packets_total{direction=\"4to6\"} %d\n", s.Packets64, s.Packets46)
		family("nat64_fastpath_bytes_total", "counter", "Octets of those packets as they came.")
		fmt.Fprintf(w, "nat64_fastpath_bytes_total{direction=\"6to4\"} %d\nnat64_fastpath_bytes_total{direction=\"4to6\"} %d\n", s.Bytes64, s.Bytes46)
		family("nat64_fastpath_punted_total", "counter", "Packets left to the slow path, by reason.")
		for i, n := range s.Punted {
			fmt.Fprintf(w, "nat64_fastpath_punted_total{reason=%q} %d\n", fastpath.Punt(i), n)
		}
	}
	s := d.t.Stats()
	family("nat64_packets_total", "counter", "Packets by what became of them.")
	for r, n := range s.All() {
		fmt.Fprintf(w, "nat64_packets_total{reason=%q} %d\n", r, n)
	}
	family("nat64_replies_total", "counter", "ICMP messages made by the translator.")
	fmt.Fprintf(w, "nat64_replies_total %d\n", s.Replies)
	family("nat64_suppressed_total", "counter", "ICMP errors not sent because of the rate limit.")
	fmt.Fprintf(w, "nat64_suppressed_total %d\n", s.Suppressed)
	t := d.dev.Stats()
	family("nat64_tun_packets_total", "counter", "Packets through the TUN device; super-packets count once.")
	fmt.Fprintf(w, "nat64_tun_packets_total{direction=\"read\"} %d\nnat64_tun_packets_total{direction=\"written\"} %d\n", t.Read, t.Written)
	family("nat64_tun_bytes_total", "counter", "Octets through the TUN device.")
	fmt.Fprintf(w, "nat64_tun_bytes_total{direction=\"read\"} %d\nnat64_tun_bytes_total{direction=\"written\"} %d\n", t.ReadBytes, t.WrittenBytes)
	family("nat64_tun_errors_total", "counter", "Packets that could not be written or read.")
	fmt.Fprintf(w, "nat64_tun_errors_total{kind=\"write\"} %d\nnat64_tun_errors_total{kind=\"malformed\"} %d\n", t.WriteErrors, t.Malformed)
	if d.pool != nil {
		family("nat64_pool_bindings", "gauge", "Addresses of the dynamic pool in use.")
		fmt.Fprintf(w, "nat64_pool_bindings %d\n", d.pool.Len())
	}
	family("nat64_reloads_total", "counter", "Configurations read again on SIGHUP.")
	fmt.Fprintf(w, "nat64_reloads_total{result=\"taken\"} %d\nnat64_reloads_total{result=\"refused\"} %d\n", d.reloads.Load(), d.refusals.Load())
}
