package cache

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
)

func newCache(t *testing.T, limit int64) *Cache {
	t.Helper()
	c, err := Open(filepath.Join(t.TempDir(), "cache"), limit)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func put(t *testing.T, c *Cache, name string, content []byte) Key {
	t.Helper()
	key := KeyOf([]byte(name))
	if err := c.Put(key, content); err != nil {
		t.Fatal(err)
	}
	return key
}

func TestKeepsContents(t *testing.T) {
	c := newCache(t, 1<<20)
	for _, content := range [][]byte{{}, []byte("x"), bytes.Repeat([]byte("kernel"), 10000)} {
		key := put(t, c, string(content), content)
		if got, ok := c.Get(key); !ok || !bytes.Equal(got, content) {
			t.Errorf("%d bytes were kept, %d came back (%t)", len(content), len(got), ok)
		}
	}
	if _, ok := c.Get(KeyOf([]byte("never kept"))); ok {
		t.Error("a content came back that was never kept")
	}
}

func TestKeysTellPartsApart(t *testing.T) {
	keys := map[Key]bool{}
	for _, parts := range [][][]byte{{[]byte("ab"), []byte("c")}, {[]byte("a"), []byte("bc")}, {[]byte("abc")}, {[]byte("abc"), {}}} {
		keys[KeyOf(parts...)] = true
	}
	if len(keys) != 4 {
		t.Errorf("%d different keys of 4", len(keys))
	}
}

// TestEveryCorruptionIsNoticed flips each byte of an entry in turn, and cuts it at each length.
func TestEveryCorruptionIsNoticed(t *testing.T) {
	c := newCache(t, 1<<20)
	key := put(t, c, "k", []byte("some code"))
	whole, err := os.ReadFile(c.path(key))
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		flipped := bytes.Clone(whole)
		flipped[i] ^= 1
		for _, bad := range [][]byte{flipped, whole[:i]} {
			if err := os.WriteFile(c.path(key), bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, ok := c.Get(key); ok {
				t.Fatalf("byte %d is wrong and went unnoticed", i)
			}
			if _, err := os.Stat(c.path(key)); !errors.Is(err, os.ErrNotExist) {
				t.Fatal("the corrupt entry is still there")
			}
		}
	}
}

func TestOnlyTheUserMayReadOrWrite(t *testing.T) {
	c := newCache(t, 1<<20)
	path := c.path(put(t, c, "k", []byte("code")))
	for ; path != filepath.Dir(filepath.Dir(c.folder)); path = filepath.Dir(path) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
	}
}

func TestRefusesFoldersThatOthersWrite(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "shared")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(folder, 1); err == nil || len(errors.GetAllHints(err)) == 0 {
		t.Errorf("error %v", err)
	}
}

func TestRemovesTheLongestUnusedFirst(t *testing.T) {
	c := newCache(t, 10*1100)
	content := make([]byte, 1000)
	old := time.Now().Add(-time.Hour)
	var keys []Key
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		key := put(t, c, name, content)
		if err := os.Chtimes(c.path(key), old, old); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	c.Get(keys[0]) // used again
	for _, name := range []string{"i", "j", "k"} {
		put(t, c, name, content)
	}
	if _, ok := c.Get(keys[0]); !ok {
		t.Error("the entry used last is gone")
	}
	usage, err := c.Usage()
	if err != nil || usage.Bytes > c.limit || usage.Entries < 8 {
		t.Errorf("%+v held, %v", usage, err)
	}
}

func TestEnforcesTheLimitOnWhatOthersWrote(t *testing.T) {
	const size = 1000
	c := newCache(t, 5*size)
	put(t, c, "own", make([]byte, size))
	other, err := Open(filepath.Dir(c.folder), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		put(t, other, fmt.Sprint(i), make([]byte, size))
	}
	if err := c.EnforceLimit(); err != nil {
		t.Fatal(err)
	}
	if usage, err := c.Usage(); err != nil || usage.Bytes > c.limit || usage.Entries == 0 {
		t.Errorf("%+v held, %v", usage, err)
	}
}

func TestVerifyAndClear(t *testing.T) {
	c := newCache(t, 1<<20)
	put(t, c, "sound", []byte("code"))
	bad := c.path(put(t, c, "bad", []byte("code")))
	if err := os.WriteFile(bad, []byte(magic+"nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if sound, removed, err := c.Verify(); sound != 1 || removed != 1 || err != nil {
		t.Errorf("%d sound, %d removed, %v", sound, removed, err)
	}
	foreign := filepath.Join(filepath.Dir(c.folder), "not ours")
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Clear(); err != nil {
		t.Fatal(err)
	}
	if usage, _ := c.Usage(); usage.Entries != 0 {
		t.Errorf("%v left", usage)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Error("a file that is no entry was removed")
	}
	put(t, c, "after", []byte("code"))
}

func TestManyWritersOfOneEntry(t *testing.T) {
	c := newCache(t, 1<<20)
	key, content := KeyOf([]byte("k")), bytes.Repeat([]byte("kernel"), 5000)
	var group sync.WaitGroup
	for range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			for range 20 {
				if err := c.Put(key, content); err != nil {
					t.Error(err)
				}
				if got, ok := c.Get(key); !ok || !bytes.Equal(got, content) {
					t.Error("half an entry came back")
				}
			}
		}()
	}
	group.Wait()
}

func TestNilCacheKeepsNothing(t *testing.T) {
	var c *Cache
	key := put(t, c, "k", []byte("code"))
	if _, ok := c.Get(key); ok {
		t.Error("a nil cache kept something")
	}
	if _, err := c.Usage(); err != nil || c.Clear() != nil {
		t.Error("a nil cache failed")
	}
}
