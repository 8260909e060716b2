// Package cache keeps compiled code on disk under the hash of everything it was made from.
//
// Each entry is one file: a magic number, the SHA-256 of the content, and the content. Files appear by rename, so that a
// reader sees a whole entry or none, whoever else writes; an entry that does not fit its hash is dropped and made anew.
package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/errors"
)

const (
	magic       = "FUSEEKC1"
	headerSize  = len(magic) + sha256.Size
	entryFolder = "entries-1" // changes with the format, so that clearing never touches anything else
	temporary   = "new-"
)

// Key names an entry: the hash of everything that its content depends on.
type Key [sha256.Size]byte

// KeyOf hashes the parts that a content depends on, in order. Parts are told apart by their lengths, so that ("ab", "c")
// and ("a", "bc") differ.
func KeyOf(parts ...[]byte) Key {
	hash := sha256.New()
	for _, part := range parts {
		_ = binary.Write(hash, binary.LittleEndian, uint64(len(part))) // a hash takes every write
		hash.Write(part)
	}
	return Key(hash.Sum(nil))
}

// Cache is a folder of entries. Its methods may be called by several goroutines, and by several processes on one folder.
// A nil *Cache holds nothing and keeps nothing, which is how a process without a usable folder runs.
type Cache struct {
	folder string
	limit  int64

	mutex sync.Mutex
	held  int64 // bytes on disk as far as this process knows; -1 before the first Put
}

// Open returns the cache in a folder, which is made where there is none, holding at most limit bytes. A folder that
// cannot be written, that belongs to somebody else or that others may write is an error: its content is run as code.
func Open(folder string, limit int64) (*Cache, error) {
	for _, path := range []string{folder, filepath.Join(folder, entryFolder)} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, errors.WithHint(errors.Wrap(err, "no disk cache"), "set FUSEE_CACHE_DIR to a folder that can be written")
		}
		if err := private(path); err != nil {
			return nil, err
		}
	}
	return &Cache{folder: filepath.Join(folder, entryFolder), limit: limit, held: -1}, nil
}

// private checks that only this user can put files into a folder.
func private(folder string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return errors.Wrap(err, "no disk cache")
	}
	status, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(status.Uid) == os.Geteuid() && info.Mode().Perm()&0o022 == 0 {
		return nil
	}
	err = errors.Newf("the cache folder %s can be written by other users", folder)
	return errors.WithHint(err, "set FUSEE_CACHE_DIR to a folder of your own that nobody else can write")
}

// path returns the file of an entry. The first byte of the hash is a folder, so that none gets very long.
func (c *Cache) path(key Key) string {
	name := hex.EncodeToString(key[:])
	return filepath.Join(c.folder, name[:2], name[2:])
}

// Get returns the content kept under a key. A corrupt entry is removed and counts as absent.
func (c *Cache) Get(key Key) ([]byte, bool) {
	if c == nil {
		return nil, false
	}
	path := c.path(key)
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, false
	}
	content, ok := open(file)
	if !ok {
		_ = os.Remove(path) // another process may have been faster
		return nil, false
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // the oldest entries go first when space runs out
	return content, true
}

// open checks a file and returns the content in it.
func open(file []byte) ([]byte, bool) {
	if len(file) < headerSize || string(file[:len(magic)]) != magic {
		return nil, false
	}
	content := file[headerSize:]
	sum := sha256.Sum256(content)
	return content, bytes.Equal(sum[:], file[len(magic):headerSize])
}

// Put keeps a content under a key, and removes the entries unused for longest where the limit is passed. A content that
// could not be written is an error that a caller may ignore: it is compiled again next time.
func (c *Cache) Put(key Key, content []byte) error {
	if c == nil {
		return nil
	}
	sum := sha256.Sum256(content)
	path := c.path(key)
	if err := writeWhole(path, []byte(magic), sum[:], content); err != nil {
		return errors.Newf("compiled code is not kept in %s: %v", c.folder, systemError(err))
	}
	return c.grow(int64(headerSize + len(content)))
}

// systemError is what the system said, without the file's name, which is another one each time.
func systemError(err error) error {
	var number syscall.Errno
	if errors.As(err, &number) {
		return number
	}
	return err
}

// writeWhole writes a file under another name and renames it when it is complete.
func writeWhole(path string, parts ...[]byte) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(folder, temporary) // readable by the user alone
	if err != nil {
		return err
	}
	for _, part := range parts {
		if _, err = file.Write(part); err != nil {
			break
		}
	}
	if err = errors.CombineErrors(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

// grow counts new bytes and makes room when there are too many.
func (c *Cache) grow(added int64) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.held >= 0 {
		c.held += added
		if c.held <= c.limit {
			return nil
		}
	}
	held, err := c.trim()
	c.held = held
	return err
}

// entry is a file of the cache.
type entry struct {
	path string
	size int64
	used time.Time
}

// entries lists the files below the folder, in no special order, leaving out what vanishes meanwhile.
func (c *Cache) entries() ([]entry, error) {
	var found []entry
	err := filepath.WalkDir(c.folder, func(path string, item fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !item.Type().IsRegular() {
			return err
		}
		if info, err := item.Info(); err == nil {
			found = append(found, entry{path, info.Size(), info.ModTime()})
		}
		return nil
	})
	return found, errors.Wrap(err, "reading the cache")
}

// Empty tells whether the cache holds no entry at all, as on a machine's first compile.
func (c *Cache) Empty() bool {
	if c == nil {
		return true
	}
	folder, err := os.Open(c.folder)
	if err != nil {
		return true
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(1)
	return len(names) == 0
}
