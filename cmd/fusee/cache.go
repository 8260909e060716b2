package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"fusee/backend/cache"
)

// cacheVariable names the folder of the disk cache; the Python package reads the same variable.
const cacheVariable = "FUSEE_CACHE_DIR"

func newCacheCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "cache",
		Short: "Look at the disk cache of compiled code, or empty it",
	}
	command.AddCommand(
		cacheAction("path", "Print the cache's folder", printCachePath),
		cacheAction("size", "Print how much the cache holds", printCacheSize),
		cacheAction("clear", "Remove all compiled code from the cache", clearCache),
		cacheAction("verify", "Check every entry, and remove the damaged ones", verifyCache),
	)
	return command
}

// cacheAction returns a sub-command without arguments that works on the cache's folder.
func cacheAction(name, short string, action func(command *cobra.Command, folder string) error) *cobra.Command {
	return &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			folder, err := cacheFolder()
			if err != nil {
				return err
			}
			return action(command, folder)
		},
	}
}

// cacheFolder returns the folder that the Python package tells the compiler to use.
func cacheFolder() (string, error) {
	if folder := os.Getenv(cacheVariable); folder != "" {
		return folder, nil
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", errors.WithHint(errors.Wrap(err, "no folder for the cache"), "set "+cacheVariable)
	}
	return filepath.Join(base, "fusee"), nil
}

func printCachePath(command *cobra.Command, folder string) error {
	fmt.Fprintln(command.OutOrStdout(), folder)
	return nil
}

func printCacheSize(command *cobra.Command, folder string) error {
	held, err := usageOf(folder)
	if err != nil {
		return err
	}
	fmt.Fprintln(command.OutOrStdout(), held)
	return nil
}

// usageOf returns what the cache in a folder holds, without making the folder.
func usageOf(folder string) (cache.Usage, error) {
	opened, err := openExisting(folder)
	if err != nil {
		return cache.Usage{}, err
	}
	return opened.Usage()
}

// openExisting returns the cache in a folder; nil, which is an empty cache, where there is no such folder.
func openExisting(folder string) (*cache.Cache, error) {
	if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return cache.Open(folder, math.MaxInt64)
}

func clearCache(command *cobra.Command, folder string) error {
	opened, err := openExisting(folder)
	if err != nil {
		return err
	}
	held, err := opened.Usage()
	if err != nil {
		return err
	}
	if err := opened.Clear(); err != nil {
		return err
	}
	fmt.Fprintf(command.OutOrStdout(), "removed: %s\n", held)
	return nil
}

func verifyCache(command *cobra.Command, folder string) error {
	opened, err := openExisting(folder)
	if err != nil {
		return err
	}
	sound, removed, err := opened.Verify()
	if err != nil {
		return err
	}
	fmt.Fprintf(command.OutOrStdout(), "%d sound, %d removed\n", sound, removed)
	return nil
}
