package races

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// atOnce is how many cases run at a time: most of a case is waiting for the next look of a run.
const atOnce = 6

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(atOnce)); err != nil {
		panic(err)
	}
	code := m.Run()
	if program.path != "" {
		_ = os.Remove(program.path)
	}
	os.Exit(code)
}

// many runs a case beside others.
func many(t *testing.T, name string, do func(*testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		do(t)
	})
}
