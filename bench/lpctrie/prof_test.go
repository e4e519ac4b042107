package lpctrie
import ("testing";"os";"signalbox.example/bench/routes"; lpc "signalbox.example/lpctrie")
func BenchmarkCompileSorted(b *testing.B) {
	if os.Getenv("QUICK") == "" { b.Skip() }
	v4, _, _ := routes.Full()
	vals := make([]uint32, len(v4)); for i := range vals { vals[i]=uint32(i) }
	for b.Loop() { lpc.Compile(v4, vals, lpc.CompileOptions{}) }
}
func BenchmarkIns(b *testing.B) {
	if os.Getenv("QUICK") == "" { b.Skip() }
	v4, _, _ := routes.Full()
	ps := Shuffled(v4, 1)
	b.ResetTimer()
	for range b.N { Table(ps) }
}
