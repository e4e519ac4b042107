package openpgpdns

import (
	"io"
	"os"
)

// readFile reads up to len(b) octets of a file.
func readFile(path string, b []byte) (int, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	n, err := io.ReadFull(f, b)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return n, err
}

// writeFile writes a new file, or over an old one.
func writeFile(path string, data []byte) error {
	return os.WriteFile(path, data, 0o644)
}
