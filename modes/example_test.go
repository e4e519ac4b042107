package modes_test

import (
	"fmt"

	"signalbox.example/modes"
)

func Example() {
	var filter modes.AddressFilter
	var m modes.Message
	for _, hex := range []string{"8d406b902015a678d4d220aa4bda", "8d406b909945de10000405999be4"} {
		f, err := modes.ParseHex(hex)
		if err != nil {
			fmt.Println(err)
			return
		}
		if reason := filter.Accept(&f, f.Time12); reason != modes.Accepted {
			fmt.Println("rejected:", reason)
			continue
		}
		if err := modes.Decode(&f, &m); err != nil {
			fmt.Println(err)
			continue
		}
		if m.Callsign.OK {
			fmt.Println(m.Address, "is", m.Callsign.V)
		}
		if v := m.Velocity; v.GroundSpeed.OK && v.Track.OK {
			fmt.Printf("%v flies %.0f kt, track %.0f\n", m.Address, v.GroundSpeed.V, v.Track.V)
		}
	}
	// Output:
	// 406b90 is EZY85MH
	// 406b90 flies 494 kt, track 285
}

func ExampleAddressFilter() {
	var filter modes.AddressFilter
	reply, _ := modes.ParseHex("20000098ccea07") // a DF4: its parity is its address
	squitter, _ := modes.ParseHex("5d4b1a2c1be761")
	fmt.Println(filter.Accept(&reply, 0))
	fmt.Println(filter.Accept(&squitter, 0)) // a DF11 tells of 4b1a2c
	fmt.Println(filter.Accept(&reply, 1*modes.TicksPerSecond))
	fmt.Println(filter.Accept(&reply, 90*modes.TicksPerSecond))
	// Output:
	// address
	// accepted
	// accepted
	// address
}

func ExampleCPRGlobal() {
	var even, odd modes.Message
	f, _ := modes.ParseHex("8d40621d58c382d690c8ac2863a7")
	modes.Decode(&f, &even)
	f, _ = modes.ParseHex("8d40621d58c386435cc412692ad6")
	modes.Decode(&f, &odd)
	p, err := modes.CPRGlobal(even.Position.V, odd.Position.V, false, nil)
	fmt.Printf("%.4f %.4f %v\n", p.Lat, p.Lon, err)
	// Output: 52.2572 3.9194 <nil>
}

func ExampleInferCommB() {
	f, _ := modes.ParseHex("a0001910a3d9f532bfec007ae77d")
	var m modes.Message
	modes.Decode(&f, &m)
	hint := modes.State{Altitude: modes.Some(m.Altitude.V.Feet)}
	for _, c := range modes.InferCommB(nil, m.MB.V, &hint) {
		fmt.Printf("BDS %v, score %.2f: %v\n", c.Code, c.Score, c.For)
		fmt.Printf("Mach %.3f, IAS %.0f kt\n", c.Register.Mach.V, c.Register.IAS.V)
	}
	// Output:
	// BDS 6,0, score 1.00: usual values, IAS and Mach, vertical rates
	// Mach 0.808, IAS 250 kt
}
