// Command image makes an image from files, the same one for the same files, and loads it into an
// engine, or writes it as docker load reads it. It prints the image's ID.
//
//	image -tag=demo/agent:1 -file=/agent=bin/agent:0755 -dir=/tmp:1777 -load
//	image -tag=demo/odd:1 -env=A=b -user=7 -volume=/data -expose=80/tcp -label=k=v -o=odd.tar
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/sandplan/sandplan/testfixtures/image/scratch"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	tag := flags.String("tag", "", "NAME:TAG of the image")
	load := flags.Bool("load", false, "load it into the engine")
	socket := flags.String("socket", defaultSocket(os.Getenv("DOCKER_HOST")), "the engine's unix socket")
	file := flags.String("o", "", "write it to this file; - is standard output")
	spec := scratch.Spec{Arch: runtime.GOARCH}
	declare(flags, &spec)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *tag == "" || *load == (*file != "") || flags.NArg() > 0 {
		return errors.New("-tag, and either -load or -o, are needed, and nothing else but flags")
	}
	img, err := scratch.Image(spec)
	if err != nil {
		return err
	}
	if *load {
		id, err := scratch.Load(ctx, *socket, *tag, img)
		if err == nil {
			fmt.Fprintln(out, id)
		}
		return err
	}
	return save(*file, *tag, img, out)
}

func save(file, tag string, img v1.Image, out io.Writer) error {
	if file == "-" {
		return scratch.Save(out, tag, img)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := errors.Join(scratch.Save(f, tag, img), f.Close()); err != nil {
		return err
	}
	id, err := img.ConfigName()
	if err == nil {
		fmt.Fprintln(out, id)
	}
	return err
}

func defaultSocket(host string) string {
	if path, ok := strings.CutPrefix(host, "unix://"); ok {
		return path
	}
	return "/var/run/docker.sock"
}

// declare adds the flags that fill in the image.
func declare(flags *flag.FlagSet, s *scratch.Spec) {
	c := &s.Config
	flags.StringVar(&s.Arch, "arch", s.Arch, "architecture")
	flags.Func("file", "PATH=SOURCE[:MODE], a file or a whole directory; may be repeated", func(v string) error {
		path, rest, ok := strings.Cut(v, "=")
		source, mode, err := cutMode(rest)
		if !ok || source == "" {
			return errors.New("not PATH=SOURCE")
		}
		s.Entries = append(s.Entries, scratch.Entry{Path: path, Source: source, Mode: mode})
		return err
	})
	flags.Func("dir", "PATH[:MODE], an empty directory; may be repeated", func(v string) error {
		path, mode, err := cutMode(v)
		if mode == 0 {
			mode = 0o755
		}
		s.Entries = append(s.Entries, scratch.Entry{Path: path, Mode: mode | fs.ModeDir})
		return err
	})
	flags.Func("link", "PATH=TARGET, a symbolic link; may be repeated", func(v string) error {
		path, target, ok := strings.Cut(v, "=")
		if !ok {
			return errors.New("not PATH=TARGET")
		}
		s.Entries = append(s.Entries, scratch.Entry{Path: path, Link: target, Mode: 0o777})
		return nil
	})
	flags.Func("env", "NAME=VALUE; may be repeated", func(v string) error { scratch.Env(c, v); return nil })
	flags.Func("label", "KEY=VALUE; may be repeated", func(v string) error {
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		k, v, _ := strings.Cut(v, "=")
		c.Labels[k] = v
		return nil
	})
	flags.Func("volume", "PATH; may be repeated", set(&c.Volumes))
	flags.Func("expose", "PORT/PROTOCOL; may be repeated", set(&c.ExposedPorts))
	flags.Func("entrypoint", "one argument of ENTRYPOINT; may be repeated", list(&c.Entrypoint))
	flags.Func("cmd", "one argument of CMD; may be repeated", list(&c.Cmd))
	flags.Func("healthcheck", "one element of HEALTHCHECK (CMD, …); may be repeated", func(v string) error {
		if c.Healthcheck == nil {
			c.Healthcheck = &v1.HealthConfig{}
		}
		return list(&c.Healthcheck.Test)(v)
	})
	flags.StringVar(&c.User, "user", "", "USER")
	flags.StringVar(&c.WorkingDir, "workdir", "", "WORKDIR")
	flags.StringVar(&c.StopSignal, "stopsignal", "", "STOPSIGNAL")
}

func set(to *map[string]struct{}) func(string) error {
	return func(v string) error {
		if *to == nil {
			*to = map[string]struct{}{}
		}
		(*to)[v] = struct{}{}
		return nil
	}
}

func list(to *[]string) func(string) error {
	return func(v string) error { *to = append(*to, v); return nil }
}

// cutMode splits PATH[:MODE]; the mode is octal.
func cutMode(v string) (string, fs.FileMode, error) {
	i := strings.LastIndexByte(v, ':')
	if i < 0 {
		return v, 0, nil
	}
	n, err := strconv.ParseUint(v[i+1:], 8, 12)
	if err != nil {
		return "", 0, fmt.Errorf("mode %q is not octal", v[i+1:])
	}
	mode := fs.FileMode(n & 0o777)
	for unix, bit := range map[uint64]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if n&unix != 0 {
			mode |= bit
		}
	}
	return v[:i], mode, nil
}
