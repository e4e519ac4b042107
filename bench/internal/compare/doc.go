// Package compare runs the comparisons of the signalbox libraries with their
// peers and writes what they measured: tables between markers in one
// README.md, and plots as SVG beside it.
//
// A [Section] is one comparison. It first runs the tests that hold both sides
// to the same right answers; only then does it measure, mostly by the
// benchmarks and programs in the folders beside this one, whose output it
// reads. Each section is one file here: its commands, its reading of their
// output, its table and its plot. A peer that cannot run on this machine is
// listed as not run, with the reason.
package compare
