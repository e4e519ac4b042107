package softcard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// load reads the state file. It reports false if there is none yet.
func (c *Card) load() (bool, error) {
	if c.cfg.File == "" {
		return false, nil
	}
	b, err := os.ReadFile(c.cfg.File)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("softcard: %w", err)
	}
	defer clear(b)
	if err := json.Unmarshal(b, &c.st); err != nil {
		return false, fmt.Errorf("softcard: %s: %w", c.cfg.File, err)
	}
	if c.st.Personality > V20 || c.st.Objects == nil {
		return false, fmt.Errorf("softcard: %s is not a card's state", c.cfg.File)
	}
	for i, s := range c.st.Slots {
		if len(s.Private) > 0 && c.key(i) == nil {
			return false, fmt.Errorf("softcard: %s: key %d cannot be read", c.cfg.File, i)
		}
	}
	return true, nil
}

// save writes the state beside the file and renames it, so that a crash
// leaves the old state or the new one.
func (c *Card) save() error {
	if c.cfg.File == "" {
		return nil
	}
	b, err := json.Marshal(&c.st)
	if err != nil {
		return fmt.Errorf("softcard: %w", err)
	}
	defer clear(b)
	f, err := os.CreateTemp(filepath.Dir(c.cfg.File), ".softcard-*")
	if err != nil {
		return fmt.Errorf("softcard: %w", err)
	}
	_, err = f.Write(b)
	if e := f.Sync(); err == nil {
		err = e
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), c.cfg.File)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("softcard: %w", err)
	}
	return nil
}
