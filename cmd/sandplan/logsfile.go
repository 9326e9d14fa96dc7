package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/sandplan/sandplan/providers/docker/egress"
)

const (
	// maxLogLine is far above what a proxy writes: whatever is longer is no line of its.
	maxLogLine = 1 << 20
	// maxWrong is how much is told that is wrong with a log, and maxQuoted how many bytes of it.
	maxWrong, maxQuoted = 5, 80
)

// readLog hands out the lines of a log, and goes on until the run is over when it follows. It fails when the log
// is not whole, when everything was shown. Of a run that goes on the end is still to come.
func readLog(ctx context.Context, run loggedRun, follow bool, show func([]byte, egress.Entry)) error {
	log := &logFile{path: run.log()}
	defer log.close()
	var seen sequence
	for {
		over := run.over() // asked first: what is there then is all
		err := log.lines(func(line []byte) {
			if e, ok := seen.take(line); ok {
				show(line, e)
			}
		})
		switch {
		case err != nil:
			return err
		case over && log.file == nil:
			return fmt.Errorf("the run %s was over before its proxy was started, and has no log; -run=ID shows that of another one, and sandplan runs lists them", run.id)
		case over:
			seen.over(log.part)
			if rec := run.record(); rec != nil && rec.Egress.Incomplete != "" {
				seen.note("its record says: %s", rec.Egress.Incomplete)
			}
			return seen.err()
		case !follow || !pause(ctx, followEach):
			return seen.err()
		}
	}
}

// logFile is a log that may still grow, or is still to come.
type logFile struct {
	path string
	file *os.File
	in   *bufio.Reader
	part []byte // of a line that is not whole yet
}

// lines hands out the lines that are whole now, and were not before.
func (l *logFile) lines(take func([]byte)) error {
	if l.file == nil {
		f, err := os.Open(l.path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		l.file, l.in = f, bufio.NewReader(f)
	}
	for {
		chunk, err := l.in.ReadSlice('\n')
		l.part = append(l.part, chunk[:min(len(chunk), maxLogLine+1-len(l.part))]...)
		switch {
		case err == nil:
			take(bytes.TrimSuffix(l.part, []byte("\n")))
			l.part = l.part[:0]
		case errors.Is(err, io.EOF):
			return nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

func (l *logFile) close() {
	if l.file != nil {
		l.file.Close()
	}
}

// sequence notices what is missing in a log, and what does not belong there.
type sequence struct {
	last  uint64
	ended bool
	wrong []string
	more  int // what is wrong beside
}

// take reads a line, and says whether it is one.
func (s *sequence) take(line []byte) (e egress.Entry, ok bool) {
	due := s.last + 1
	ok = len(line) <= maxLogLine && json.Unmarshal(line, &e) == nil && e.Event != ""
	switch {
	case s.ended:
		s.note("behind the last line stands %s", quoted(line))
		return e, ok
	case !ok:
		s.note("where line %d should be stands %s", due, quoted(line))
		s.last = due
		return e, false
	case e.Seq != due:
		s.note("line %d stands where line %d should", e.Seq, due)
	}
	s.last, s.ended = e.Seq, e.Event == egress.EventEnd
	return e, true
}

// over notes what a log lacks that does not grow any more. What is left is what stands behind its last line feed.
func (s *sequence) over(left []byte) {
	if len(left) > 0 {
		s.note("it ends within a line: %s", quoted(left))
	}
	if !s.ended {
		s.note("its last line, with the counts, is missing")
	}
}

func (s *sequence) note(format string, args ...any) {
	if len(s.wrong) == maxWrong {
		s.more++
		return
	}
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

func (s *sequence) err() error {
	if len(s.wrong) == 0 {
		return nil
	}
	text := strings.Join(s.wrong, "\n- ")
	if s.more > 0 {
		text += fmt.Sprintf("\n- and %d more", s.more)
	}
	return fmt.Errorf("the log is not whole\n- %s", text)
}

// quoted is what stands in a log, in ASCII and not too much of it.
func quoted(b []byte) string {
	if len(b) <= maxQuoted {
		return strconv.QuoteToASCII(string(b))
	}
	return strconv.QuoteToASCII(string(b[:maxQuoted])) + "…"
}
