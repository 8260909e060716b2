package workers

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/errors"

	"fusee/backend/cuda/internal/find"
	"fusee/backend/cuda/nvrtc"
)

// behaviour is the environment variable that makes the test's own binary a worker, and says of which kind.
const behaviour = "FUSEE_TEST_WORKER"

func TestMain(m *testing.M) {
	if kind := os.Getenv(behaviour); kind != "" {
		work(kind)
	}
	os.Exit(m.Run())
}

// work is a worker with a fake compiler.
func work(kind string) {
	if library, found := strings.CutPrefix(kind, "NVRTC "); found {
		serveNVRTC(library)
	}
	switch kind {
	case "dies at once":
		os.Exit(3)
	case "says nothing":
		time.Sleep(time.Hour)
	case "greets with rubbish":
		fmt.Print("Welcome to this program. It has much to say, and none of it is a frame.")
		time.Sleep(time.Hour)
	case "greets as another":
		_ = writeFrame(os.Stdout, greeting{"another protocol"})
		time.Sleep(time.Hour)
	}
	if err := Serve(os.Stdin, os.Stdout, func(p nvrtc.Program) ([]byte, error) { return misbehave(kind, p) }); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func serveNVRTC(path string) {
	library, err := nvrtc.Open(path, 0)
	if err != nil || Serve(os.Stdin, os.Stdout, library.Compile) != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func misbehave(kind string, program nvrtc.Program) ([]byte, error) {
	switch kind {
	case "dies later":
		os.Exit(3)
	case "hangs":
		time.Sleep(time.Hour)
	case "refuses":
		return nil, errors.New("no")
	case "gives nothing":
		return nil, nil
	case "answers another":
		_ = writeFrame(os.Stdout, reply{Number: 1 << 40, Image: []byte("wrong")})
		time.Sleep(time.Hour)
	case "damages":
		var frame bytes.Buffer
		_ = writeFrame(&frame, reply{Number: 1, Image: []byte("wrong")})
		damaged := frame.Bytes()
		damaged[len(damaged)-3] ^= 1
		_, _ = os.Stdout.Write(damaged)
		time.Sleep(time.Hour)
	case "announces too much":
		_, _ = os.Stdout.Write(bytes.Repeat([]byte{0xff}, 2*headLength))
		time.Sleep(time.Hour)
	}
	return image(program, "worker "+strconv.Itoa(os.Getpid())), nil
}

// image is what the fake compiler makes, and names who made it.
func image(program nvrtc.Program, maker string) []byte {
	return fmt.Appendf(nil, "%s for %s, %d bytes of source, by %s", program.Name, program.Architecture, len(program.Source), maker)
}

func programs(count int) []nvrtc.Program {
	list := make([]nvrtc.Program, count)
	for i := range list {
		list[i] = nvrtc.Program{Name: fmt.Sprintf("k%d.cu", i), Source: strings.Repeat("\xffx", 100*i), Architecture: "sm_90"}
	}
	return list
}

// config makes workers of a kind.
func config(kind string, count int) Config {
	return Config{
		Command: func() *exec.Cmd {
			command := exec.Command(os.Args[0])
			command.Env = append(os.Environ(), behaviour+"="+kind)
			return command
		},
		Workers: count, Threads: 2, Patience: time.Minute, Idle: time.Minute,
	}
}

func start(t *testing.T, c Config) *Pool {
	t.Helper()
	pool := New(c)
	pool.Start()
	t.Cleanup(pool.Stop)
	return pool
}

// awaitReady waits until all workers have greeted.
func awaitReady(t *testing.T, pool *Pool) {
	t.Helper()
	for _, w := range pool.workers {
		select {
		case <-w.ready:
		case <-time.After(time.Minute):
			t.Fatal("a worker does not greet")
		}
	}
}

// check compares results with those of the fake compiler and counts how many each maker made.
func check(t *testing.T, list []nvrtc.Program, results []nvrtc.Result) map[string]int {
	t.Helper()
	makers := map[string]int{}
	for i, result := range results {
		_, maker, _ := strings.Cut(string(result.Image), ", by ")
		if result.Err != nil || string(result.Image) != string(image(list[i], maker)) {
			t.Errorf("program %d: %q, %v", i, result.Image, result.Err)
		}
		makers[maker]++
	}
	return makers
}

func ownCompile(program nvrtc.Program) ([]byte, error) {
	time.Sleep(time.Millisecond)
	return image(program, "own"), nil
}

func TestWorkersAndTheOwnProcessShareTheWork(t *testing.T) {
	pool := start(t, config("works", 2))
	awaitReady(t, pool)
	list := programs(200)
	makers := check(t, list, pool.CompileAll(list, ownCompile))
	if len(makers) != 3 || makers["own"] == 0 {
		t.Errorf("compiled by %v", makers)
	}
}

func TestThereAreNoWorkersUntilTheyAreStarted(t *testing.T) {
	for _, pool := range []*Pool{New(config("works", 2)), start(t, config("works", 0)), start(t, config("works", -1))} {
		list := programs(5)
		if makers := check(t, list, pool.CompileAll(list, ownCompile)); makers["own"] != 5 {
			t.Errorf("compiled by %v", makers)
		}
	}
}

// TestWhateverAWorkerDoesTheOwnProcessCompiles has workers fail in every way; none may cost a result, or keep it waiting for long.
func TestWhateverAWorkerDoesTheOwnProcessCompiles(t *testing.T) {
	for _, kind := range []string{
		"dies at once", "says nothing", "greets with rubbish", "greets as another", "dies later", "hangs", "refuses", "gives nothing", "answers another", "damages",
		"announces too much",
	} {
		t.Run(kind, func(t *testing.T) {
			c := config(kind, 2)
			c.Patience = 2 * time.Second
			pool := start(t, c)
			for range 2 {
				list := programs(30)
				if makers := check(t, list, pool.CompileAll(list, slowly)); makers["own"] != len(list) {
					t.Errorf("compiled by %v", makers)
				}
			}
		})
	}
}

// slowly leaves workers the time to take something.
func slowly(program nvrtc.Program) ([]byte, error) {
	time.Sleep(30 * time.Millisecond)
	return image(program, "own"), nil
}

func TestAWorkerThatCannotBeStartedIsDoneWithout(t *testing.T) {
	c := config("works", 3)
	c.Command = func() *exec.Cmd { return exec.Command("/does/not/exist") }
	list := programs(5)
	if makers := check(t, list, start(t, c).CompileAll(list, ownCompile)); makers["own"] != 5 {
		t.Errorf("compiled by %v", makers)
	}
}

func TestAnErrorIsThatOfTheOwnProcess(t *testing.T) {
	pool := start(t, config("refuses", 2))
	awaitReady(t, pool)
	list := programs(4)
	for i, result := range pool.CompileAll(list, func(p nvrtc.Program) ([]byte, error) { return nil, errors.Newf("%s is wrong", p.Name) }) {
		if result.Err == nil || result.Err.Error() != list[i].Name+" is wrong" {
			t.Errorf("program %d: %v", i, result.Err)
		}
	}
}

func TestTheLongestProgramsComeFirst(t *testing.T) {
	list := programs(4)
	list[0], list[3] = list[3], list[0]
	var order []int
	for i := range longestFirst(list) {
		order = append(order, i)
	}
	if fmt.Sprint(order) != "[0 2 1 3]" {
		t.Errorf("order %v", order)
	}
}

func TestSeveralCallersShareThePool(t *testing.T) {
	pool := start(t, config("works", 2))
	awaitReady(t, pool)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			list := programs(40)
			check(t, list, pool.CompileAll(list, ownCompile))
		})
	}
	group.Wait()
}

func TestIdleWorkersEndAndStartAgain(t *testing.T) {
	c := config("works", 1)
	c.Idle = 50 * time.Millisecond
	var started atomic.Int32
	command := c.Command
	c.Command = func() *exec.Cmd { started.Add(1); return command() }
	pool := start(t, c)
	first := pool.workers[0]
	awaitEnd(t, first)
	pool.Start()
	if started.Load() != 2 {
		t.Errorf("%d were started", started.Load())
	}
}

func awaitEnd(t *testing.T, w *worker) {
	t.Helper()
	select {
	case <-w.ended:
	case <-time.After(time.Minute):
		t.Fatal("a worker does not end")
	}
}

func TestStoppingEndsWhatWorkersAreAt(t *testing.T) {
	pool := start(t, config("hangs", 1))
	awaitReady(t, pool)
	w := pool.workers[0]
	time.AfterFunc(100*time.Millisecond, pool.Stop)
	if _, err := w.compile(programs(1)[0]); err == nil {
		t.Error("a hanging worker compiled")
	}
	awaitEnd(t, w)
	if _, err := w.compile(programs(1)[0]); err == nil {
		t.Error("a worker that ended compiled")
	}
}

// TestAWorkerEndsWithItsInput closes the input of one that hangs, as happens when the process that started it is killed.
func TestAWorkerEndsWithItsInput(t *testing.T) {
	pool := start(t, config("hangs", 1))
	awaitReady(t, pool)
	w := pool.workers[0]
	go func() { _, _ = w.compile(programs(1)[0]) }()
	time.Sleep(50 * time.Millisecond)
	if err := w.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, w)
	if w.process.ProcessState.ExitCode() != 0 {
		t.Errorf("the worker ended with %v", w.process.ProcessState)
	}
}

// TestWorkersMakeTheSameImages compiles with NVRTC here and in a worker.
func TestWorkersMakeTheSameImages(t *testing.T) {
	path := find.NVRTC(t)
	library, err := nvrtc.Open(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	pool := start(t, config("NVRTC "+path, 1))
	awaitReady(t, pool)
	for _, source := range []string{"", `extern "C" __global__ void k(float *x) { x[threadIdx.x] *= 2.0f; }`} {
		program := nvrtc.Program{Name: "k.cu", Source: source, Architecture: "sm_90", NoCache: true}
		here, err := library.Compile(program)
		if err != nil {
			t.Fatal(err)
		}
		there, err := pool.workers[0].compile(program)
		if err != nil || !bytes.Equal(here, there) {
			t.Errorf("%q: %d bytes here, %d there, %v", source, len(here), len(there), err)
		}
	}
	if _, err := pool.workers[0].compile(nvrtc.Program{Name: "k.cu", Source: "nonsense", Architecture: "sm_90"}); err == nil {
		t.Error("wrong source compiled")
	}
}
