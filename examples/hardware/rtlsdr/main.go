// Command rtlsdr receives aircraft with an RTL-SDR at this computer's USB port,
// through librtlsdr, and prints the frames: *HEX; lines that examples/adsb and
// other programs read.
//
//	rtlsdr | adsb -in - -format avr -interactive
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/samuel/go-rtlsdr/rtl"

	"signalbox.example/modes"
	"signalbox.example/modes/avr"
	"signalbox.example/modes/demod"
	"signalbox.example/modes/rtltcp"
)

// The device is a source as it is, without an adapter.
var _ rtltcp.Source = (*rtl.Device)(nil)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("rtlsdr", flag.ContinueOnError)
	fs.SetOutput(stderr)
	index := fs.Int("device", 0, "number of the receiver")
	gain := fs.Int("gain", rtltcp.AutoGain, "gain in tenths of a dB; -1000 leaves it to the tuner")
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil || fs.NArg() > 0 {
		return 2
	}
	if err := receive(*index, *gain, stdout); err != nil {
		fmt.Fprintln(stderr, "rtlsdr:", err)
		return 1
	}
	return 0
}

func receive(index, gain int, stdout io.Writer) error {
	device, err := rtl.Open(index)
	if err != nil {
		return err
	}
	defer device.Close()
	if err := rtltcp.Tune(device, rtltcp.Frequency, rtltcp.DefaultRate, gain); err != nil {
		return err
	}
	d, err := demod.New(demod.Config{Format: demod.UC8, Rate: rtltcp.DefaultRate})
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	out := bufio.NewWriter(stdout)
	defer out.Flush()
	var line []byte
	var failed error
	emit := func(f *modes.Frame) {
		line = avr.Append(line[:0], f)
		if failed == nil {
			_, failed = out.Write(line)
		}
	}
	// librtlsdr calls with each of its buffers until the answer is false.
	err = device.ReadAsync(15, 16*16384, func(samples []byte) bool {
		select {
		case <-stop:
			return false
		default:
		}
		d.Process(samples, emit)
		if failed == nil {
			failed = out.Flush()
		}
		return failed == nil
	})
	d.Flush(emit)
	if err == nil && !errors.Is(failed, syscall.EPIPE) {
		err = failed
	}
	return err
}
