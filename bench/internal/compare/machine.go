package compare

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// machine describes where the figures come from.
func machine() string {
	cpu := field("/proc/cpuinfo", "model name", ":")
	if model := field("/proc/cpuinfo", "model", ":"); cpu != "" && model != "" {
		cpu += " (model " + model + ")"
	}
	system := strings.Trim(field("/etc/os-release", "PRETTY_NAME", "="), `"`)
	kernel := ""
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel, _, _ = strings.Cut(strings.TrimSpace(string(b)), "-")
		kernel = "Linux " + kernel
	}
	parts := []string{fmt.Sprintf("%d cores %s/%s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)}
	for _, p := range []string{cpu, kernel, system, runtime.Version()} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, ", ")
}

// field returns the value of the first line "name sep value" of a file.
func field(file, name, sep string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, sep); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	f := strings.Fields(string(b))
	return f[0]
}
