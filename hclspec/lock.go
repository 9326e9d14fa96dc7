package hclspec

import (
	"fmt"
	"regexp"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

var (
	lockConfigShape = &shape{optional: []string{"env", "labels", "volumes", "exposed_ports"}, once: true}
	lockImageShape  = &shape{
		label:    "reference",
		optional: []string{"digest", "ids", "cli", "shell"},
		blocks:   map[string]*shape{"config": lockConfigShape},
	}
	lockShape = &shape{optional: []string{"dns"}, blocks: map[string]*shape{"image": lockImageShape}}
)

// lockWay is what to do about a lock file that somebody has edited.
const lockWay = "The lock file is written by sandplan init; remove what is wrong, and run sandplan init."

// readLock reads the lock file, if there is one.
func (l *loader) readLock() hcl.Diagnostics {
	l.spec.Lock.Path = l.place.lock
	if l.place.lock == "" {
		return nil
	}
	name := l.place.display(l.place.lock)
	at := hcl.Range{Filename: name, Start: hcl.InitialPos, End: hcl.InitialPos}
	if _, err := l.disk.stat(l.place.lock); err != nil {
		if isNotExist(err) {
			return nil
		}
		return fail(InvalidLock, at, "%s cannot be read: %s.", l.place.lock, plainError(err))
	}
	l.spec.Lock.Exists = true
	src, err := l.disk.read(l.place.lock, maxConfigFile)
	if err != nil {
		return fail(InvalidLock, at, "%s cannot be read: %s.", l.place.lock, err)
	}
	l.spec.Sources[name], l.spec.Paths[name] = src, l.place.lock
	lock, diags := parseLock(src, name)
	lock.Path, lock.Exists = l.place.lock, true
	l.spec.Lock = lock
	return diags
}

// parseLock reads the text of a lock file. Everything in it is constant.
func parseLock(src []byte, name string) (Lock, hcl.Diagnostics) {
	m := newMeter(allowance)
	ev := newEvaluator(newDisk(nil), "/", m)
	body, diags := parseConfig(src, name, m)
	top, more := lockShape.open(&hcl.Block{Type: "lock file", Body: body, DefRange: body.Range()})
	diags = append(diags, more...)
	var lock Lock
	r := &reader{section: top, ev: ev, sc: &scope{}}
	lock.DNS = readConstant(r, "dns", lockFormat(addresses), nil).V
	diags = append(diags, r.diags...)
	images, more := unique(top.inner("image"), "image")
	diags = append(diags, more...)
	for _, s := range images {
		img, more := ev.decodeLockImage(s)
		diags = append(diags, more...)
		lock.Images = append(lock.Images, img)
	}
	sort.Slice(lock.Images, func(i, j int) bool { return lock.Images[i].Ref < lock.Images[j].Ref })
	return lock, append(diags, m.report()...)
}

// lockFormat gives all mistakes in a lock file one summary, and the way out.
func lockFormat[T any](f format[T]) format[T] {
	parse := f.parse
	f.summary = InvalidLock
	f.parse = func(v cty.Value) (T, error) {
		t, err := parse(v)
		if err != nil {
			err = errorPath(err).NewErrorf("%s. %s", err, strings.TrimSuffix(lockWay, "."))
		}
		return t, err
	}
	return f
}

var digestFormat = lockFormat(format[string]{want: cty.String, parse: func(v cty.Value) (string, error) {
	s := v.AsString()
	return s, checkDigest(s)
}})

var digestOnly = regexp.MustCompile(`^` + digestPattern + `$`)

func checkDigest(s string) error {
	if digestOnly.MatchString(s) {
		return nil
	}
	return fmt.Errorf("%q is not sha256: and 64 hexadecimal digits", clip(s))
}

var textMap = lockFormat(format[map[string]string]{want: cty.Map(cty.String), parse: func(v cty.Value) (map[string]string, error) {
	out := map[string]string{}
	for it := v.ElementIterator(); it.Next(); {
		k, e := it.Element()
		if e.IsNull() {
			return nil, cty.IndexPath(k).NewErrorf("%q is null", clip(k.AsString()))
		}
		out[k.AsString()] = e.AsString()
	}
	return out, nil
}})

func (ev *evaluator) decodeLockImage(s *section) (LockImage, hcl.Diagnostics) {
	r := &reader{section: s, ev: ev, sc: &scope{}}
	anything := func(string) error { return nil }
	img := LockImage{Ref: s.name, Range: s.block.DefRange}
	if err := checkImage(s.name); err != nil {
		r.diags = append(r.diags, problem(InvalidLock, s.block.LabelRanges[0], "%s. %s", err, lockWay))
	}
	digest := readConstant(r, "digest", digestFormat, "")
	ids := readConstant(r, "ids", lockFormat(words("", checkDigest)), nil)
	img.Digest, img.IDs = digest.V, ids.V
	if len(r.diags) == 0 && digest.V == "" && len(ids.V) == 0 {
		r.diags = append(r.diags, problem(InvalidLock, s.block.DefRange, "The entry has neither digest nor ids, so it pins nothing. %s", lockWay))
	}
	cli := readConstant(r, "cli", lockFormat(format[string]{want: cty.String, parse: func(v cty.Value) (string, error) { return v.AsString(), nil }}), "")
	shell := readConstant(r, "shell", lockFormat(boolean), false)
	img.CLI, img.Shell, img.Inspected = cli.V, shell.V, shell.Set
	for _, b := range s.inner("config") {
		cr := r.inside(b)
		img.Config = ImageConfig{
			Env:          readConstant(cr, "env", textMap, nil).V,
			Labels:       readConstant(cr, "labels", textMap, nil).V,
			Volumes:      readConstant(cr, "volumes", lockFormat(words("", anything)), nil).V,
			ExposedPorts: readConstant(cr, "exposed_ports", lockFormat(words("", anything)), nil).V,
		}
		r.diags = append(r.diags, cr.diags...)
	}
	return img, r.diags
}
