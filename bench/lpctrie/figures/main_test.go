package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The smallest scenarios, all the way to files.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	var stdout, stderr strings.Builder
	if status := run([]string{"-out", dir, "-only", "scenarios", "-limit", "100"}, &stdout, &stderr); status != 0 {
		t.Fatalf("status %d: %s", status, stderr.String())
	}
	csv, err := os.ReadFile(filepath.Join(dir, "scenarios.csv"))
	if err != nil || !strings.Contains(string(csv), "a: full view,0,100,\"lpctrie.Table\"") {
		t.Errorf("%v\n%s", err, csv)
	}
	svg, err := os.ReadFile(filepath.Join(dir, "lookup-full.svg"))
	if err != nil || !strings.Contains(string(svg), "<svg") {
		t.Errorf("%v: %d bytes", err, len(svg))
	}
	if run([]string{"-h"}, &stdout, &stderr) != 0 || run([]string{"-x"}, &stdout, &stderr) != 2 || run([]string{"-only", "x"}, &stdout, &stderr) != 1 {
		t.Error("wrong status")
	}
}
