package main

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"fusee/cmd/fusee/internal/report"
)

// defaultWidth is the width of lines where nothing says how wide they may be.
const defaultWidth = 80

// terminalOf says how to lay text out on a stream: as wide as the terminal or as COLUMNS says, in colour on a terminal
// unless NO_COLOR is set.
func terminalOf(out io.Writer) report.Terminal {
	directory, _ := os.Getwd() // without it file names are written in full
	terminal := report.Terminal{Width: defaultWidth, Directory: directory}
	if file, ok := out.(*os.File); ok {
		if size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ); err == nil {
			terminal.Width = int(size.Col)
			terminal.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		}
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		terminal.Width = columns
	}
	return terminal
}
