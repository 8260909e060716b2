package cache

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
)

// abandoned is the age from which an unfinished file is taken to be left by a process that died.
const abandoned = time.Hour

// Usage is how much a cache holds.
type Usage struct {
	Entries int
	Bytes   int64
}

func (u Usage) String() string {
	if u.Entries == 0 {
		return "empty"
	}
	plural := "ies"
	if u.Entries == 1 {
		plural = "y"
	}
	return fmt.Sprintf("%d entr%s, %.1f MiB", u.Entries, plural, float64(u.Bytes)/(1<<20))
}

// Usage adds up the entries.
func (c *Cache) Usage() (Usage, error) {
	if c == nil {
		return Usage{}, nil
	}
	found, err := c.entries()
	var usage Usage
	for _, e := range found {
		usage.Entries++
		usage.Bytes += e.size
	}
	return usage, err
}

// trim removes the entries unused for longest until a tenth of the limit is free again, if more than the limit is used,
// and returns how many bytes are left.
func (c *Cache) trim() (int64, error) {
	found, err := c.entries()
	if err != nil {
		return 0, err
	}
	var held int64
	for _, e := range found {
		held += e.size
	}
	if held <= c.limit {
		return held, nil
	}
	sort.Slice(found, func(i, j int) bool { return found[i].used.Before(found[j].used) })
	for _, e := range found {
		if held <= c.limit-c.limit/10 {
			break
		}
		if err := os.Remove(e.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return held, errors.Wrap(err, "making room in the cache")
		}
		held -= e.size
	}
	return held, nil
}

// EnforceLimit makes room where the limit is passed, counting what other processes wrote too.
func (c *Cache) EnforceLimit() error {
	if c == nil {
		return nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	held, err := c.trim()
	c.held = held
	return err
}

// Verify reads every entry, removes the corrupt ones and what processes that died left behind, and returns how many
// entries are sound and how many files were removed.
func (c *Cache) Verify() (sound, removed int, err error) {
	if c == nil {
		return 0, 0, nil
	}
	found, err := c.entries()
	for _, e := range found {
		unfinished := strings.HasPrefix(filepath.Base(e.path), temporary)
		switch {
		case unfinished && time.Since(e.used) < abandoned:
		case !unfinished && isSound(e.path):
			sound++
		default:
			removed++
			err = errors.CombineErrors(err, os.Remove(e.path))
		}
	}
	return sound, removed, err
}

func isSound(path string) bool {
	file, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	_, ok := open(file)
	return ok
}

// Clear removes all entries and nothing else that may be in the folder.
func (c *Cache) Clear() error {
	if c == nil {
		return nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.held = -1
	if err := os.RemoveAll(c.folder); err != nil {
		return errors.Wrap(err, "emptying the cache")
	}
	return errors.Wrap(os.Mkdir(c.folder, 0o700), "emptying the cache")
}
