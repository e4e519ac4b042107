package tunbed

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"signalbox.example/internal/netns"
)

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// offloads sets the bed's devices for a work. Errors are ignored for features
// that a device does not have.
func (b *Bed) offloads(w Work) error {
	for _, h := range []struct {
		ns  *netns.Namespace
		dev string
	}{{b.Client, "c0"}, {b.Server, "s0"}} {
		if _, err := h.ns.Run("ethtool", "-K", h.dev, "tso", onOff(!w.MTUSize), "gso", onOff(!w.MTUSize)); err != nil {
			return err
		}
		if _, err := h.ns.Run("ethtool", "-K", h.dev, "gro", "on"); err != nil {
			return err
		}
	}
	for _, dev := range []string{"rc", "rs"} {
		if _, err := b.Router.Run("ethtool", "-K", dev, "gro", onOff(w.GRO)); err != nil {
			return err
		}
		b.Router.Run("ethtool", "-K", dev, "rx-udp-gro-forwarding", onOff(w.GRO))
		timeout, irqs := "0", "0"
		if w.GRO {
			timeout, irqs = "50000", "10"
		}
		// A stream's packets are handled by one processor, the last, as a
		// network card with one queue has it. Without that, sender and
		// acknowledgements use both in turn, packets of one size overtake each
		// other, and TCP's retransmissions are what is measured; by the hash of
		// the flow, which a translator changes, it would be chance who shares
		// a processor with whom.
		steering := "0"
		if w.Streams > 0 {
			steering = strconv.FormatUint(1<<(min(runtime.NumCPU(), 32)-1), 16)
		}
		for file, value := range map[string]string{"gro_flush_timeout": timeout, "napi_defer_hard_irqs": irqs, "queues/rx-0/rps_cpus": steering} {
			if _, err := b.Router.Run("sh", "-c", "echo "+value+" > /sys/class/net/"+dev+"/"+file); err != nil {
				return err
			}
		}
	}
	return nil
}

// ends returns who sends, who receives and at which address.
func (b *Bed) ends(w Work, plain bool, plainFamily int) (from, to *netns.Namespace, addr string) {
	if w.To4 {
		from, to = b.Client, b.Server
		addr = serverIn6
		if plain {
			addr = map[int]string{4: serverV4, 6: serverV6}[plainFamily]
		}
	} else {
		from, to = b.Server, b.Client
		addr = mapped
		if plain {
			addr = map[int]string{4: clientV4, 6: clientV6}[plainFamily]
		}
	}
	return from, to, addr
}

// Run does one work through the translator that stands on the router. With a
// plain router, plainFamily is 4 or 6.
func (b *Bed) Run(w Work, t Translator, plainFamily int, length time.Duration) (Result, error) {
	r := Result{Work: w.Name, Direction: w.Direction(), Translator: t.Name}
	if err := b.offloads(w); err != nil {
		return r, err
	}
	from, to, addr := b.ends(w, t.Plain, plainFamily)
	var used time.Duration
	if b.translator != nil {
		used = b.translator.cpu()
	}
	machine := machineCPU()
	var err error
	if w.Streams > 0 {
		err = tcp(&r, w, from, to, addr, length)
	} else {
		err = udp(&r, w, from, to, addr, length)
	}
	r.MachineCPU = machineCPU() - machine
	if b.translator != nil {
		r.TranslatorCPU = b.translator.cpu() - used
	}
	return r, err
}

const port = 5201

func tcp(r *Result, w Work, from, to *netns.Namespace, addr string, length time.Duration) error {
	server, err := start(to.Command("iperf3", "-s", "-1", "-p", strconv.Itoa(port), "--forceflush"), "listening")
	if err != nil {
		return err
	}
	defer server.stop()
	seconds := int(math.Ceil(length.Seconds())) // iperf3 takes whole seconds; 0 would be for ever
	out, err := from.Run("timeout", strconv.Itoa(seconds+15), "iperf3", "-J", "-c", addr, "-p", strconv.Itoa(port),
		"-t", strconv.Itoa(seconds), "-P", strconv.Itoa(w.Streams))
	if err != nil {
		return err
	}
	var report struct {
		End struct {
			SumReceived struct {
				Bytes         float64 `json:"bytes"`
				Seconds       float64 `json:"seconds"`
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
			SumSent struct {
				Retransmits int `json:"retransmits"`
			} `json:"sum_sent"`
		} `json:"end"`
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		return fmt.Errorf("iperf3's report: %w", err)
	}
	r.Mbps, r.Bytes = report.End.SumReceived.BitsPerSecond/1e6, report.End.SumReceived.Bytes
	r.Seconds, r.Retransmits = report.End.SumReceived.Seconds, report.End.SumSent.Retransmits
	return nil
}

// udp runs this program again in both namespaces as sender and receiver.
func udp(r *Result, w Work, from, to *netns.Namespace, addr string, length time.Duration) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	receiver, err := start(to.Command(self, roleReceive, strconv.Itoa(port), strconv.Itoa(w.Payload), strconv.FormatBool(w.Polled)), "ready")
	if err != nil {
		return err
	}
	defer receiver.stop()
	out, err := from.Run(self, roleSend, addr, strconv.Itoa(port), strconv.Itoa(w.Payload), strconv.Itoa(w.Segments), length.String())
	if err != nil {
		return err
	}
	var sent, seconds float64
	if _, err := fmt.Sscan(out, &sent, &seconds); err != nil {
		return fmt.Errorf("the sender's report %q: %w", out, err)
	}
	// The receiver ends by itself when the sender's last datagrams, which
	// are empty, have arrived or nothing came for a while.
	select {
	case <-receiver.done:
	case <-time.After(10 * time.Second):
	}
	lines := strings.Fields(strings.TrimSpace(receiver.output()))
	if len(lines) < 2 {
		return fmt.Errorf("the receiver's report: %q", receiver.output())
	}
	got, err := strconv.ParseFloat(lines[1], 64)
	if err != nil {
		return err
	}
	r.Seconds, r.Packets, r.Bytes = seconds, got, got*float64(w.Payload)
	r.Kpps, r.SentKpps, r.Mbps = got/seconds/1e3, sent/seconds/1e3, r.Bytes*8/seconds/1e6
	return nil
}
